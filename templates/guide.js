// From a problem, N, ε and prices to the algorithm, by the table that the page holds.
const problems = JSON.parse(document.getElementById("data").textContent);
const form = document.querySelector(".ask"), result = document.querySelector(".result");
const field = name => form.elements[name];
const readable = x => !Number.isFinite(x) ? "–" : x >= 1e15 || x !== 0 && x < 1e-3 ? x.toExponential(2).replace("e-", "·10⁻").replace("e+", "·10").replace(/(?<=10⁻?)\d+$/, d => [...d].map(c => "⁰¹²³⁴⁵⁶⁷⁸⁹"[c]).join(""))
  : x >= 1000 ? Math.round(x).toLocaleString("en").replaceAll(",", " ") : String(+x.toPrecision(3));
const number = name => field(name).value.trim() === "" ? NaN : Number(field(name).value);

// What an algorithm costs at best at these indices of N and ε; undefined where it does not reach ε.
function best(problem, algorithm, n, e, aim) {
  const [communications, calls, vectors] = algorithm.round, clients = problem.clients[n];
  const most = aim.name === "communications" ? aim.budget * problem.sgd[n] : Infinity;
  const costs = algorithm.costs[n][e].map(([steps, size, rounds, server]) => {
    const cost = { algorithm, steps, size, rounds, server, communications: communications * rounds, calls: calls * steps * rounds };
    const bytes = vectors * clients * problem.dimension * 8 * rounds;
    cost.seconds = aim.latency * cost.communications + (aim.bandwidth ? bytes / aim.bandwidth : 0) + aim.call * cost.calls;
    cost.cost = aim.price * cost.communications + cost.calls;
    cost.value = cost[aim.name];
    return cost;
  }).filter(cost => cost.calls <= most * (1 + 1e-12));
  return costs.reduce((least, cost) => !least || cost.value < least.value ? cost : least, undefined);
}

// All algorithms that reach ε, the best first; how many are equally good, and whether the first is ahead by
// more than one of its rounds.
function ranked(problem, n, e, aim) {
  const all = problem.algorithms.map(algorithm => best(problem, algorithm, n, e, aim)).filter(Boolean);
  all.sort((a, b) => a.value - b.value || a.calls - b.calls);
  const tied = all.filter(cost => cost.value === all[0].value), next = all[tied.length];
  return { all, tied, next, ahead: tied.length === 1 && !(next?.value <= all[0].value * (1 + 1 / all[0].rounds)) };
}

const settings = cost => `${cost.algorithm.steps}${readable(cost.steps)}, γ = ${readable(cost.size)}${cost.server === 1 ? "" : `, server step ${readable(cost.server)}`}`;

function show() {
  const problem = problems[field("problem").value], n = +field("clients").value, e = +field("target").value;
  const bandwidth = number("bandwidth");
  const aim = { name: field("aim").value, price: number("price"), budget: number("budget"), latency: number("latency") || 0, call: number("call") || 0, bandwidth: bandwidth > 0 ? bandwidth : 0 };
  for (const node of document.querySelectorAll("[data-aim]")) node.hidden = node.dataset.aim !== aim.name;
  for (const input of form.querySelectorAll("[data-aim] input")) input.disabled = input.parentNode.hidden;
  const isSound = form.checkValidity() && (aim.name !== "seconds" || aim.call > 0);
  const answer = result.querySelector(".answer"), body = result.querySelector("tbody");
  const cell = (row, text, family) => { const td = row.insertCell(); td.textContent = text; if (family !== undefined) td.className = `family-${family}`; };
  body.replaceChildren();
  if (!isSound) {
    answer.textContent = aim.name !== "seconds" ? `The ${aim.name === "cost" ? "price" : "budget"} must be a number, 0 or more.` : "A gradient must take some time; otherwise ever more local steps cost nothing.";
    return;
  }
  remember(problem, n, e, aim);
  const { all, tied, next, ahead } = ranked(problem, n, e, aim), [first] = all;
  answer.replaceChildren();
  if (!first) answer.textContent = "No algorithm reaches this error under these limits.";
  else {
    tied.forEach((cost, i) => {
      const name = document.createElement(ahead ? "strong" : "span");
      if (ahead) name.className = `family-${cost.algorithm.family}`;
      name.textContent = cost.algorithm.label;
      answer.append(i ? " or " : "", name, ` (${settings(cost)}${tied.length > 1 ? `, ${readable(cost.calls)} gradients of a client` : ""})`);
    });
    const value = { cost: `a cost of ${readable(first.cost)}, `, seconds: `${readable(first.seconds)} seconds, `, communications: "" }[aim.name];
    answer.append(`: ${value}${readable(first.communications)} communications${tied.length > 1 ? "" : ` and ${readable(first.calls)} gradients of a client`}.`);
    if (next) answer.append(` ${next.algorithm.label} needs ${readable(next.value / first.value)} times as ${aim.name === "communications" ? "many" : "much"}${ahead ? "." : ": with one round more the first would not be first."}`);
  }
  for (const cost of all) {
    const row = body.insertRow(), own = aim.name === "communications" ? [] : [cost.value];
    cell(row, cost.algorithm.label, cost.algorithm.family);
    [cost.size, cost.steps, cost.server, cost.rounds, cost.communications, cost.calls, ...own, cost.value / first.value].forEach(x => cell(row, readable(x)));
  }
  for (const section of document.querySelectorAll("[data-problem]")) section.hidden = section.dataset.problem !== field("problem").value;
  const section = document.querySelector(`[data-problem="${field("problem").value}"]`);
  section.querySelector(".least").textContent = { seconds: "seconds, at these prices", cost: `${readable(aim.price)} × communications + gradients`, communications: `communications within ${readable(aim.budget)} times the gradients with which SGD reaches the smallest ε` }[aim.name];
  for (const td of section.querySelectorAll("td")) {
    const [i, j] = [+td.dataset.clients, +td.dataset.target], { all: [top], tied, ahead } = ranked(problem, i, j, aim);
    td.className = `${ahead ? `won-${top.algorithm.family}` : ""}${i === n && j === e ? " chosen" : ""}`;
    td.children[0].classList.toggle("level", !ahead);
    const texts = top ? [tied.map(cost => cost.algorithm.label).join(" or "), readable(top.value), (tied.length > 1 ? `${top.algorithm.label}: ` : "") + settings(top)] : ["none", "not reached", ""];
    texts.forEach((text, k) => { td.children[k].textContent = text; });
  }
}

// What each aim asks for.
const asked = { cost: ["price"], communications: ["budget"], seconds: ["latency", "bandwidth", "call"] };

// The choices in the address, so that it can be sent.
function remember(problem, n, e, aim) {
  const chosen = { problem: problem.name, clients: problem.clients[n], target: +problem.targets[e].toPrecision(3), least: aim.name };
  for (const name of asked[aim.name]) chosen[name] = field(name).value;
  history.replaceState(null, "", `#${new URLSearchParams(chosen)}`);
}

// The index of the value nearest to one of an address; another where it names none.
function nearest(values, wanted, other) {
  const apart = value => Math.abs(Math.log(value / wanted));
  return +wanted > 0 ? values.reduce((best, value, i) => apart(value) < apart(values[best]) ? i : best, 0) : other;
}

// The choices of another problem, with what an address says of them.
function choose(said = new URLSearchParams()) {
  const problem = problems[field("problem").value];
  const fill = (name, values, other) => {
    const chosen = nearest(values, said.get(name), other);
    field(name).replaceChildren(...values.map((value, i) => new Option(readable(value), i, false, i === chosen)));
  };
  fill("clients", problem.clients, 0);
  fill("target", problem.targets, Math.floor(problem.targets.length / 4));
  const [latency, bandwidth, call] = problem.prices ?? [0.05, 1e6, 1e-4];
  const usual = { price: problem.price ?? 1000, budget: problem.budget, latency, bandwidth, call };
  for (const [name, value] of Object.entries(usual)) field(name).value = said.get(name) ?? value ?? "";
  field("aim").value = said.get("least") in asked ? said.get("least") : problem.price ? "cost" : "seconds";
  show();
}

form.hidden = result.hidden = false;
document.body.classList.add("asked");
form.addEventListener("submit", event => event.preventDefault());
form.addEventListener("input", event => event.target === field("problem") ? choose() : show());
for (const td of document.querySelectorAll(".choice td")) td.addEventListener("click", () => {
  [field("clients").value, field("target").value] = [td.dataset.clients, td.dataset.target];
  show();
});
const said = new URLSearchParams(location.hash.slice(1)), named = problems.findIndex(one => one.name === said.get("problem"));
if (named >= 0) field("problem").value = named;
choose(said);
