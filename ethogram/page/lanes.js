// The rows of a picture: a run's own row, its landmarks and rounds, one lane for each type, then its children.

const ROW_HEIGHT = { run: 30, rounds: 20, landmarks: 26, lane: 22 };
const NARROW_EXTRA = { run: 16, rounds: 0, landmarks: 14, lane: 13 };
const OPEN_ROWS = 64;      // with so many rows or fewer, every run shows its lanes from the start
const LANE_ORDER = ["agent", "decision", "gate", "review", "findings", "human", "handoff", "control", "loop"];

// A tree as rows from the top down. `opened` says which runs show their lanes.
function rowsOf(root, opened, narrow) {
  const rows = [];
  const runRows = [];
  walk(root, (run, depth) => {
    run.rounds = new Set();
    const lanes = lanesOf(run);
    const open = opened(run);
    const row = { kind: "run", run, depth, open, foldable: lanes.length > 0, label: titleOf(run), events: open ? lifecycleOf(run) : run.events.slice().sort(byTime) };
    rows.push(row);
    runRows.push(row);
    if (!open) return;
    const rounds = roundsOf(run).filter(({ round }) => !(run.parent && run.parent.rounds.has(round)));
    run.rounds = new Set([...rounds.map(({ round }) => round), ...(run.parent ? run.parent.rounds : [])]);
    if (rounds.length) rows.push({ kind: "rounds", run, depth: depth + 1, label: "rounds", rounds, events: [] });
    if (run === root) {
      const landmarks = treeEvents(root).filter((event) => event.mark.landmark);
      if (landmarks.length) rows.push({ kind: "landmarks", run, depth: depth + 1, label: "landmarks", events: landmarks });
    }
    for (const [type, events] of lanes) rows.push({ kind: "lane", run, depth: depth + 1, label: type, type, events, stretches: [] });
  });
  let y = 0;
  const byKey = new Map();
  for (const row of rows) {
    row.y = y;
    row.height = ROW_HEIGHT[row.kind] + (narrow ? NARROW_EXTRA[row.kind] : 0);
    y += row.height;
    row.times = row.events.map((event) => event.at);
    row.key = `${row.kind} ${row.run.id} ${row.label || ""}`;
    byKey.set(row.key, row);
    row.index = byKey.size - 1;
  }
  for (const run of new Set(rows.map((row) => row.run))) {
    for (const stretch of stretchesOf(run)) {
      const lane = byKey.get(`lane ${run.id} ${stretch.opening.type}`);
      if (lane) lane.stretches.push(stretch);
    }
  }
  // Where each run's part of the picture ends: behind its last descendant.
  const ends = [];
  for (const row of runRows) {
    while (ends.length && ends[ends.length - 1].depth >= row.depth) ends.pop().bottom = row.y;
    ends.push(row);
  }
  for (const row of ends) row.bottom = y;
  rows.total = y;
  return rows;
}

function lifecycleOf(run) {
  return run.events.filter((event) => event.type === "run.started" || event.type === "run.finished");
}

// Types with their events in order of time; the run's own row is the lane of its start and its end.
function lanesOf(run) {
  const lanes = new Map();
  for (const event of run.events) {
    if (event.type === "run.started" || event.type === "run.finished") continue;
    const lane = lanes.get(event.type);
    if (lane) lane.push(event);
    else lanes.set(event.type, [event]);
  }
  for (const events of lanes.values()) events.sort(byTime);
  const rank = (type) => {
    const at = LANE_ORDER.indexOf(type.split(".")[0]);
    return at < 0 ? LANE_ORDER.length : at;
  };
  return [...lanes].sort((a, b) => rank(a[0]) - rank(b[0]) || a[1][0].at - b[1][0].at || (a[0] < b[0] ? -1 : 1));
}

// When somebody was at work: runs without children, and behaviours that last. A run that waits for its children is not.
function busyTimes(root) {
  const busy = [];
  walk(root, (run) => {
    if (!run.children.length && run.parent && run.events.length) busy.push(ownSpan(run));
    for (const { opening, closing } of stretchesOf(run)) {
      if (opening.type.startsWith("agent.")) busy.push([opening.at, closing.at]);
    }
  });
  return busy;
}

const DOMAIN_TONES = { agent: "agent", decision: "decision", gate: "run", review: "review", human: "human", handoff: "human", control: "human", capture: "warn" };

function laneTone(type) {
  const domain = type.split(".")[0];
  if (/[._](paused|warning)$/.test(type)) return "warn";
  return Object.hasOwn(DOMAIN_TONES, domain) ? DOMAIN_TONES[domain] : "plain";
}

// How many rows a tree has with every lane shown.
function fullRows(root) {
  let rows = 1;
  walk(root, (run) => { rows += 1 + new Set(run.events.map((event) => event.type)).size; });
  return rows;
}

// What a run is called where its parent stands above it: without what it shares with the parent's id.
function shortName(run) {
  const id = plain(run.id) || "(no id)";
  const parent = run.parent && plain(run.parent.id);
  if (parent && id.startsWith(parent) && /^[/~]/.test(id.slice(parent.length))) return id.slice(parent.length).replace(/^\//, "");
  return id;
}

function titleOf(run) {
  const { kind, actor, model } = run.overview;
  if (kind === "subagent" && actor) return [actor, model].filter(Boolean).map((each) => oneLine(each, 40)).join(" · ");
  return shortName(run);
}

function outcomeOf(run) {
  if (run.overview.outcome !== undefined) return oneLine(run.overview.outcome, 40);
  return "open";
}

function outcomeTone(run) {
  const outcome = run.overview.outcome;
  return outcome === undefined ? "open" : toneOfOutcome(outcome);
}

// From a run's first event to its last.
function ownSpan(run) {
  let from = Infinity, to = -Infinity;
  for (const event of run.events) {
    from = Math.min(from, event.at);
    to = Math.max(to, event.at);
  }
  return [from, to];
}

// What a whole tree comes to: for the line of facts above the picture.
function glanceOf(root) {
  const glance = { runs: 0, events: 0, rounds: new Set(), gates: [0, 0], reviews: [0, 0], pauses: 0, human: 0, warnings: 0, cost: null, atLeast: false, tokens: null };
  const tally = (pair, verdict) => { if (verdict) pair[verdict === "good" ? 0 : 1] += 1; };
  walk(root, (run) => {
    glance.runs += 1;
    glance.events += run.events.length;
    for (const event of run.events) {
      const domain = event.type.split(".")[0];
      if (event.payload && typeof event.payload === "object" && Number.isInteger(event.payload.round)) glance.rounds.add(event.payload.round);
      if (domain === "gate") tally(glance.gates, verdictOf(event.payload));
      else if (domain === "review") tally(glance.reviews, verdictOf(event.payload));
      else if (event.mark.shape === "pause") glance.pauses += 1;
      else if (event.mark.shape === "warn") glance.warnings += 1;
      if (event.mark.tone === "human" && domain !== "handoff" && event.type !== "control.applied" && event.type !== "run.finished") glance.human += 1;
    }
  });
  const spent = root.overview.withChildren || root.overview;
  if (spent.costUsd !== undefined) [glance.cost, glance.atLeast] = [spent.costUsd, spent.lowerBound];
  if (spent.usage && spent.usage.tokens) glance.tokens = Object.values(spent.usage.tokens).reduce((sum, each) => sum + each, 0);
  return glance;
}
