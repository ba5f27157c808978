// The bar of a page that a run rewrites: it shows the progress, and reloads the page once there is a
// newer version. Both are in the file status.js, which calls showStatus.

// Milliseconds between two looks at the status.
const BETWEEN_LOOKS = 1000;
// A reader who used the page within this time is not interrupted.
const IN_USE = 1500;
// The status changes every second: after this time without a change, the run was killed.
const SILENCE = 30000;
// Two looks in a row find no status if the run has ended.
const MOST_MISSED = 2;
// A page that was moved away from its status does not reload for ever.
const MOST_RELOADS = 2;
const SAVED = "exactfed-live";

const bar = document.querySelector(".live-bar");
const meter = bar.querySelector("progress");
const state = bar.querySelector("[role=status]");
const speed = bar.querySelector(".speed");
const problems = bar.querySelector("details");

// The bar hides nothing: the page ends above it.
new ResizeObserver(() => {
  const space = `${bar.offsetHeight}px`;
  const places = { paddingBottom: space, scrollPaddingBottom: space };
  Object.assign(document.documentElement.style, places);
}).observe(bar);

let lastUsed = Number.NEGATIVE_INFINITY;
for (const type of ["pointerdown", "pointermove", "keydown", "input"]) {
  addEventListener(
    type,
    () => {
      lastUsed = performance.now();
    },
    { capture: true, passive: true },
  );
}

// Assigning the same text again would make screen readers repeat it.
function write(place, text) {
  if (place.textContent !== text) place.textContent = text;
}

function counted(count, noun) {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

function timeText(seconds) {
  if (seconds < 90) return `${Math.ceil(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}

function rateText(perSecond) {
  const isFast = perSecond >= 1;
  const rate = isFast ? perSecond : 60 * perSecond;
  return `${rate.toPrecision(3)} cells/${isFast ? "s" : "min"}`;
}

function phaseText({ phase, experiment }) {
  if (phase === "waiting") return "Waiting: another run is at work on these experiments";
  if (phase === "reporting") return "Writing the reports";
  return experiment ? `Running ${experiment}` : "Starting";
}

function showProgress(status) {
  const { cells, done, failed } = status;
  const ended = cells ? (done + failed) / cells : 1;
  meter.value = status.share ? status.share : ended;
  const parts = [phaseText(status), `${done} of ${counted(cells, "cell")}`];
  if (failed) parts.push(`${failed} failed`);
  write(state, parts.join(" · "));
  const numbers = [];
  if (status.cells_per_second) {
    const steps = status.steps_per_second.toExponential(2).replace("e+", "e");
    numbers.push(rateText(status.cells_per_second), `${steps} steps/s`);
  }
  if (status.seconds_left !== null) numbers.push(`${timeText(status.seconds_left)} left`);
  write(speed, numbers.join(" · "));
}

function showProblems({ errors, failures, failed }) {
  const lines = [...errors];
  for (const { experiment, cell, label, reason } of failures) {
    lines.push(`${experiment}: cell ${cell} (${label}) failed: ${reason}`);
  }
  if (failed > failures.length) lines.push(`and ${failed - failures.length} more`);
  problems.hidden = lines.length === 0;
  const list = problems.querySelector("ul");
  const shown = [...list.children].map(item => item.textContent);
  if (shown.join("\n") === lines.join("\n")) return;
  const items = lines.map(line =>
    Object.assign(document.createElement("li"), { textContent: line }),
  );
  list.replaceChildren(...items);
  const first = errors.length ? errors[0].split("\n")[0] : counted(failed, "failed cell");
  write(problems.querySelector("summary"), first);
}

// What reload kept of the page before; the browser keeps its place and its fragment.
function takeKept() {
  const kept = JSON.parse(sessionStorage.getItem(SAVED) ?? "null");
  sessionStorage.removeItem(SAVED);
  return kept?.page === location.pathname ? kept : { open: false, focus: null, reloads: 0 };
}

const saved = takeKept();

// `reloads` counts those since the status was last there.
function reload(reloads) {
  const focus = document.activeElement?.id || null;
  const kept = { page: location.pathname, open: problems.open, focus, reloads };
  sessionStorage.setItem(SAVED, JSON.stringify(kept));
  location.reload();
}

function isInUse() {
  return performance.now() - lastUsed < IN_USE;
}

let missed = 0;
let reloads = saved.reloads;
const written = { number: null, time: performance.now() };

// Called by status.js.
window.showStatus = status => {
  missed = 0;
  reloads = 0;
  if (status.written !== written.number) {
    Object.assign(written, { number: status.written, time: performance.now() });
  }
  const isSilent = performance.now() - written.time > SILENCE;
  // Its reader need not be asked to run what is being run.
  document.documentElement.classList.toggle("being-run", !isSilent);
  showProgress(status);
  showProblems(status);
  if (isSilent) {
    write(state, "The run was killed: the same command runs the missing cells");
    write(speed, "");
  }
  const isNewer = status.versions[bar.dataset.page] > Number(bar.dataset.version);
  if (isNewer && !isInUse()) reload(0);
};

// Whether the page can be loaded: a web server may have ended together with the run.
async function isServed() {
  if (location.protocol === "file:") return true;
  try {
    const answer = await fetch(location.href, { method: "HEAD", cache: "no-store" });
    return answer.ok;
  } catch {
    return false;
  }
}

// There is no status: the page of the end is there, unless this page was moved away from its status.
async function missStatus() {
  missed += 1;
  if (missed < MOST_MISSED) return;
  write(speed, "");
  if (reloads >= MOST_RELOADS) {
    write(state, "This page is no longer updated: it has no status of a run");
  } else if (!(await isServed())) {
    write(state, "The server of this page does not answer");
  } else {
    write(state, "The run has ended: this page reloads when you do not use it");
    if (!isInUse()) reload(reloads + 1);
  }
}

function look() {
  const script = document.createElement("script");
  // Another address each time, since a browser may keep what it has loaded from one.
  script.src = `${bar.dataset.status}?${Date.now()}`;
  const lookAgain = () => {
    script.remove();
    setTimeout(look, BETWEEN_LOOKS);
  };
  script.onload = lookAgain;
  script.onerror = async () => {
    await missStatus();
    lookAgain();
  };
  document.head.append(script);
}

problems.open = saved.open;
if (saved.focus) document.getElementById(saved.focus)?.focus({ preventScroll: true });
look();
