// From a problem, N, ε and prices to the algorithm, by the table that the page holds.
const problems = JSON.parse(document.getElementById("data").textContent);
const form = document.querySelector(".ask");
const result = document.querySelector(".result");
// What each aim asks for.
const ASKED = {
  cost: ["price"],
  communications: ["budget"],
  seconds: ["latency", "bandwidth", "call"],
};
const DEFAULT_PRICES = [0.05, 1e6, 1e-4];
const DEFAULT_PRICE = 1000;

function field(name) {
  return form.elements[name];
}

function number(name) {
  const text = field(name).value;
  return text.trim() === "" ? NaN : Number(text);
}

// A number as text, with a power of ten where it is very small or very large.
function readable(value) {
  if (!Number.isFinite(value)) return "–";
  if (value >= 1e15 || (value !== 0 && value < 1e-3)) {
    const power = value.toExponential(2).replace("e-", "·10⁻").replace("e+", "·10");
    return power.replace(/(?<=10⁻?)\d+$/, digits =>
      [...digits].map(digit => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]).join(""),
    );
  }
  if (value >= 1000) return Math.round(value).toLocaleString("en").replaceAll(",", " ");
  return String(Number(value.toPrecision(3)));
}

// --- costs ---
// What a choice of an algorithm's settings costs, and its value under an aim.
function costOf(problem, algorithm, clients, aim, [steps, size, rounds, server]) {
  const [communicationsPerRound, callsPerStep, vectors] = algorithm.round;
  const communications = communicationsPerRound * rounds;
  const calls = callsPerStep * steps * rounds;
  const bytes = vectors * clients * problem.dimension * 8 * rounds;
  const sending = aim.bandwidth ? bytes / aim.bandwidth : 0;
  const values = {
    communications,
    calls,
    seconds: aim.latency * communications + sending + aim.call * calls,
    cost: aim.price * communications + calls,
  };
  return { algorithm, steps, size, rounds, server, ...values, value: values[aim.name] };
}

// What an algorithm costs at best at these indices of N and ε; undefined where it does not reach ε.
function best(problem, algorithm, n, e, aim) {
  const most = aim.name === "communications" ? aim.budget * problem.sgd[n] : Infinity;
  const clients = problem.clients[n];
  const costs = algorithm.costs[n][e]
    .map(choice => costOf(problem, algorithm, clients, aim, choice))
    .filter(cost => cost.calls <= most * (1 + 1e-12));
  return costs.reduce(
    (least, cost) => (!least || cost.value < least.value ? cost : least),
    undefined,
  );
}

// All algorithms that reach ε, the best first; how many are equally good, and whether the first is
// ahead by more than one of its rounds.
function ranked(problem, n, e, aim) {
  const all = problem.algorithms
    .map(algorithm => best(problem, algorithm, n, e, aim))
    .filter(Boolean);
  all.sort((a, b) => a.value - b.value || a.calls - b.calls);
  const [first] = all;
  const tied = all.filter(cost => cost.value === first.value);
  const next = all[tied.length];
  const isNear = () => next?.value <= first.value * (1 + 1 / first.rounds);
  return { all, tied, next, ahead: tied.length === 1 && !isNear() };
}

function settings(cost) {
  const server = cost.server === 1 ? "" : `, server step ${readable(cost.server)}`;
  return `${cost.algorithm.steps}${readable(cost.steps)}, γ = ${readable(cost.size)}${server}`;
}

// --- the answer ---
// What the form says: the problem, the indices of N and ε, and the aim with its prices.
function chosen() {
  const bandwidth = number("bandwidth");
  return {
    problem: problems[field("problem").value],
    n: Number(field("clients").value),
    e: Number(field("target").value),
    aim: {
      name: field("aim").value,
      price: number("price"),
      budget: number("budget"),
      latency: number("latency") || 0,
      call: number("call") || 0,
      // Without a bandwidth messages of any size take no time.
      bandwidth: Number.isNaN(bandwidth) ? 0 : Math.max(bandwidth, 0),
    },
  };
}

function show() {
  const { problem, n, e, aim } = chosen();
  for (const node of document.querySelectorAll("[data-aim]")) {
    node.hidden = node.dataset.aim !== aim.name;
  }
  for (const input of form.querySelectorAll("[data-aim] input")) {
    input.disabled = input.parentNode.hidden;
  }
  const isSound = form.checkValidity() && (aim.name !== "seconds" || aim.call > 0);
  const answer = result.querySelector(".answer");
  const body = result.querySelector("tbody");
  body.replaceChildren();
  if (!isSound) {
    answer.textContent = whatIsWrong(aim);
    return;
  }
  remember(problem, n, e, aim);
  const ranking = ranked(problem, n, e, aim);
  showAnswer(answer, ranking, aim);
  for (const cost of ranking.all) addRow(body, cost, ranking.all[0], aim);
  showTable(n, e, problem, aim);
}

function whatIsWrong(aim) {
  if (aim.name === "seconds") {
    return "A gradient must take some time; otherwise ever more local steps cost nothing.";
  }
  return `The ${aim.name === "cost" ? "price" : "budget"} must be a number, 0 or more.`;
}

// The best algorithm, or those that are equally good, and the next one.
function showAnswer(answer, { all, tied, next, ahead }, aim) {
  const [first] = all;
  answer.replaceChildren();
  if (!first) {
    answer.textContent = "No algorithm reaches this error under these limits.";
    return;
  }
  const areSeveral = tied.length > 1;
  tied.forEach((cost, i) => {
    const name = document.createElement(ahead ? "strong" : "span");
    if (ahead) name.className = `family-${cost.algorithm.family}`;
    name.textContent = cost.algorithm.label;
    const calls = areSeveral ? `, ${readable(cost.calls)} gradients of a client` : "";
    answer.append(i ? " or " : "", name, ` (${settings(cost)}${calls})`);
  });
  const value = {
    cost: `a cost of ${readable(first.cost)}, `,
    seconds: `${readable(first.seconds)} seconds, `,
    communications: "",
  }[aim.name];
  const calls = areSeveral ? "" : ` and ${readable(first.calls)} gradients of a client`;
  answer.append(`: ${value}${readable(first.communications)} communications${calls}.`);
  if (next) {
    const much = aim.name === "communications" ? "many" : "much";
    const end = ahead ? "." : ": with one round more the first would not be first.";
    const times = readable(next.value / first.value);
    answer.append(` ${next.algorithm.label} needs ${times} times as ${much}${end}`);
  }
}

// A row of the table of all algorithms that reach ε.
function addRow(body, cost, first, aim) {
  const row = body.insertRow();
  const label = row.insertCell();
  label.textContent = cost.algorithm.label;
  label.className = `family-${cost.algorithm.family}`;
  const own = aim.name === "communications" ? [] : [cost.value];
  const numbers = [
    cost.size,
    cost.steps,
    cost.server,
    cost.rounds,
    cost.communications,
    cost.calls,
  ];
  for (const value of [...numbers, ...own, cost.value / first.value]) {
    row.insertCell().textContent = readable(value);
  }
}

// The table of the best algorithms over N and ε.
function showTable(n, e, problem, aim) {
  const chosenProblem = field("problem").value;
  for (const section of document.querySelectorAll("[data-problem]")) {
    section.hidden = section.dataset.problem !== chosenProblem;
  }
  const section = document.querySelector(`[data-problem="${chosenProblem}"]`);
  section.querySelector(".least").textContent = {
    seconds: "seconds, at these prices",
    cost: `${readable(aim.price)} × communications + gradients`,
    communications: `communications within ${readable(aim.budget)} times the gradients with which SGD reaches the smallest ε`,
  }[aim.name];
  for (const cell of section.querySelectorAll("td")) {
    const i = Number(cell.dataset.clients);
    const j = Number(cell.dataset.target);
    const isChosen = i === n && j === e;
    showCell(cell, ranked(problem, i, j, aim), isChosen);
  }
}

function showCell(cell, { all: [top], tied, ahead }, isChosen) {
  cell.className = `${ahead ? `won-${top.algorithm.family}` : ""}${isChosen ? " chosen" : ""}`;
  cell.children[0].classList.toggle("level", !ahead);
  const texts = ["none", "not reached", ""];
  if (top) {
    const whose = tied.length > 1 ? `${top.algorithm.label}: ` : "";
    texts[0] = tied.map(cost => cost.algorithm.label).join(" or ");
    texts[1] = readable(top.value);
    texts[2] = whose + settings(top);
  }
  texts.forEach((text, k) => {
    cell.children[k].textContent = text;
  });
}

// --- the address ---
// The choices in the address, so that it can be sent.
function remember(problem, n, e, aim) {
  const state = new URLSearchParams({
    problem: problem.name,
    clients: problem.clients[n],
    target: Number(problem.targets[e].toPrecision(3)),
    least: aim.name,
  });
  for (const name of ASKED[aim.name]) state.set(name, field(name).value);
  history.replaceState(null, "", `#${state}`);
}

// The index of the value nearest to one of an address; another where it names none.
function nearest(values, wanted, other) {
  if (!(Number(wanted) > 0)) return other;
  const distance = value => Math.abs(Math.log(value / wanted));
  return values.reduce(
    (best, value, i) => (distance(value) < distance(values[best]) ? i : best),
    0,
  );
}

function fillList(name, values, index) {
  const options = values.map((value, i) => new Option(readable(value), i, false, i === index));
  field(name).replaceChildren(...options);
}

// The choices of another problem, with what an address says of them.
function choose(said = new URLSearchParams()) {
  const problem = problems[field("problem").value];
  const { clients, targets } = problem;
  fillList("clients", clients, nearest(clients, said.get("clients"), 0));
  const middle = Math.floor(targets.length / 4);
  fillList("target", targets, nearest(targets, said.get("target"), middle));
  const [latency, bandwidth, call] = problem.prices ?? DEFAULT_PRICES;
  const price = problem.price ?? DEFAULT_PRICE;
  const usual = { price, budget: problem.budget, latency, bandwidth, call };
  for (const [name, value] of Object.entries(usual)) {
    field(name).value = said.get(name) ?? value ?? "";
  }
  const usualAim = problem.price ? "cost" : "seconds";
  field("aim").value = said.get("least") in ASKED ? said.get("least") : usualAim;
  show();
}

form.hidden = false;
result.hidden = false;
document.body.classList.add("asked");
form.addEventListener("submit", event => event.preventDefault());
form.addEventListener("input", event => {
  if (event.target === field("problem")) choose();
  else show();
});
for (const cell of document.querySelectorAll(".choice td")) {
  cell.addEventListener("click", () => {
    field("clients").value = cell.dataset.clients;
    field("target").value = cell.dataset.target;
    show();
  });
}
const address = new URLSearchParams(location.hash.slice(1));
const named = problems.findIndex(problem => problem.name === address.get("problem"));
if (named >= 0) field("problem").value = named;
choose(address);
