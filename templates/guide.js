// From a problem, N, ε and prices to the algorithm, by the table that the page holds.
const problems = JSON.parse(document.getElementById("data").textContent);
const form = document.querySelector(".ask"), result = document.querySelector(".result");
const field = name => form.elements[name];
const readable = x => !Number.isFinite(x) ? "–" : x >= 1e15 || x !== 0 && x < 1e-3 ? x.toExponential(2).replace("e-", "·10⁻").replace("e+", "·10").replace(/(?<=10⁻?)\d+$/, d => [...d].map(c => "⁰¹²³⁴⁵⁶⁷⁸⁹"[c]).join(""))
  : x >= 1000 ? Math.round(x).toLocaleString("en").replaceAll(",", " ") : String(+x.toPrecision(3));
const number = name => field(name).value.trim() === "" ? NaN : Number(field(name).value);

// What an algorithm costs at best at these indices of N and ε; null where it does not reach ε.
function best(problem, algorithm, n, e, aim) {
  const [communications, calls, vectors] = algorithm.round, clients = problem.clients[n];
  const most = aim.name === "communications" ? aim.cap * (problem.sgd[n][e] ?? 0) : Infinity;
  const costs = algorithm.costs[n][e].map(([steps, size, rounds]) => {
    const cost = { algorithm, steps, size, rounds, communications: communications * rounds, calls: calls * steps * rounds };
    const bytes = vectors * clients * problem.dimension * 8 * rounds;
    cost.seconds = aim.latency * cost.communications + (aim.bandwidth ? bytes / aim.bandwidth : 0) + aim.call * cost.calls;
    cost.value = cost[aim.name];
    return cost;
  }).filter(cost => cost.calls <= most * (1 + 1e-12));
  return costs.reduce((least, cost) => !least || cost.value < least.value ? cost : least, null);
}

// All algorithms that reach ε, the best first.
function ranked(problem, n, e, aim) {
  const all = problem.algorithms.map(algorithm => best(problem, algorithm, n, e, aim)).filter(Boolean);
  return all.sort((a, b) => a.value - b.value || a.calls - b.calls);
}

const settings = cost => `${cost.algorithm.steps}${readable(cost.steps)}, γ = ${readable(cost.size)}`;

function show() {
  const problem = problems[field("problem").value], n = +field("clients").value, e = +field("target").value;
  const bandwidth = number("bandwidth");
  const aim = { name: field("aim").value, cap: number("cap"), latency: number("latency") || 0, call: number("call") || 0, bandwidth: bandwidth > 0 ? bandwidth : 0 };
  for (const node of document.querySelectorAll("[data-aim]")) node.hidden = node.dataset.aim !== aim.name;
  for (const input of form.querySelectorAll("[data-aim] input")) input.disabled = input.parentNode.hidden;
  const isSound = form.checkValidity() && (aim.name === "communications" || aim.call > 0);
  const answer = result.querySelector(".answer"), body = result.querySelector("tbody");
  const cell = (row, text, family) => { const td = row.insertCell(); td.textContent = text; if (family !== undefined) td.className = `family-${family}`; };
  body.replaceChildren();
  if (!isSound) {
    answer.textContent = aim.name === "communications" ? "The cap must be 1 or more." : "An oracle call must take some time; otherwise ever more local steps cost nothing.";
    return;
  }
  const all = ranked(problem, n, e, aim), [first] = all, unit = aim.name === "seconds" ? "seconds" : "communications";
  answer.replaceChildren();
  if (!first) answer.textContent = "No algorithm reaches this error under these limits.";
  else {
    const tied = all.filter(cost => cost.value === first.value), next = all[tied.length];
    tied.forEach((cost, i) => {
      const name = document.createElement("strong");
      name.className = `family-${cost.algorithm.family}`;
      name.textContent = cost.algorithm.label;
      answer.append(i ? " or " : "", name, ` (${settings(cost)}${tied.length > 1 ? `, ${readable(cost.calls)} oracle calls of a client` : ""})`);
    });
    answer.append(`: ${readable(first.value)} ${unit}${aim.name === "seconds" ? `, ${readable(first.communications)} communications` : ""}${tied.length > 1 ? "" : ` and ${readable(first.calls)} oracle calls of a client`}.`);
    if (next) answer.append(` ${next.algorithm.label} needs ${readable(next.value / first.value)} times as many ${unit}.`);
  }
  for (const cost of all) {
    const row = body.insertRow();
    cell(row, cost.algorithm.label, cost.algorithm.family);
    [cost.size, cost.steps, cost.rounds, cost.communications, cost.calls, ...aim.name === "seconds" ? [cost.seconds] : [], cost.value / first.value].forEach(x => cell(row, readable(x)));
  }
  for (const section of document.querySelectorAll("[data-problem]")) section.hidden = section.dataset.problem !== field("problem").value;
  const section = document.querySelector(`[data-problem="${field("problem").value}"]`);
  section.querySelector(".least").textContent = aim.name === "seconds" ? "seconds, at these prices" : `communications, with at most ${readable(aim.cap)} times the oracle calls of SGD`;
  for (const td of section.querySelectorAll("td")) {
    const [i, j] = [+td.dataset.clients, +td.dataset.target], [top, ...others] = ranked(problem, i, j, aim), tied = top ? [top, ...others.filter(cost => cost.value === top.value)] : [];
    td.className = `${tied.length === 1 ? `won-${top.algorithm.family}` : ""}${i === n && j === e ? " chosen" : ""}`;
    const texts = top ? [tied.map(cost => cost.algorithm.label).join(" or "), readable(top.value), (tied.length > 1 ? `${top.algorithm.label}: ` : "") + settings(top)] : ["none", "not reached", ""];
    texts.forEach((text, k) => { td.children[k].textContent = text; });
  }
}

// The choices of another problem.
function choose() {
  const problem = problems[field("problem").value];
  const fill = (name, values, chosen) => field(name).replaceChildren(...values.map((value, i) => new Option(readable(value), i, false, i === chosen)));
  fill("clients", problem.clients, 0);
  fill("target", problem.targets, Math.floor(problem.targets.length / 4));
  const [latency, bandwidth, call] = problem.prices ?? [0.05, 1e6, 1e-4];
  field("cap").value = problem.cap ?? 2;
  [field("latency").value, field("bandwidth").value, field("call").value] = [latency, bandwidth ?? "", call];
  field("aim").value = problem.cap ? "communications" : "seconds";
  for (const option of field("aim").options) option.disabled = option.value === "communications" && problem.sgd[0].every(x => x === null);
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
choose();
