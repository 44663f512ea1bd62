// What an event looks like: a shape and a tone. Both say the same, so that neither colour nor form is needed alone.
//
// Known types have marks of their own. Any other type is read by its words ("gate.", ".paused") and by plain
// payload fields ("outcome", "green"); where these say nothing it is a dot in a lane of its own.

const GOOD = new Set(["completed", "success", "succeeded", "ok", "passed", "pass", "green", "approve", "approved", "merged_ready", "answered"]);
const BAD = new Set(["failed", "failure", "error", "timed-out", "permission-denied", "changes_requested", "rejected", "red", "crash", "refused", "fail"]);
const OUTCOME_TONES = {
  completed: "good", "no-op": "plain", blocked: "warn", capped: "warn", canceled: "human", interrupted: "human",
  failed: "bad", "timed-out": "bad", "permission-denied": "bad", unstarted: "bad",
};

// A log may call an outcome "constructor": only the table's own names count.
function toneOfOutcome(outcome) {
  return Object.hasOwn(OUTCOME_TONES, outcome) ? OUTCOME_TONES[outcome] : "plain";
}

// What a payload says of how something went: "good", "bad" or null.
function verdictOf(payload) {
  if (payload === null || typeof payload !== "object") return null;
  for (const field of ["green", "allApprove", "ok", "passed"]) {
    if (payload[field] === true) return "good";
    if (payload[field] === false) return "bad";
  }
  if (payload.isError === true) return "bad";
  for (const field of ["outcome", "result", "status", "verdict"]) {
    if (GOOD.has(payload[field])) return "good";
    if (BAD.has(payload[field])) return "bad";
  }
  return null;
}

function mark(shape, tone, landmark = false) {
  return { shape, tone, landmark };
}

function judged(verdict, otherwise, landmark = false) {
  if (verdict === "good") return mark("check", "good", landmark);
  if (verdict === "bad") return mark("cross", "bad", landmark);
  return otherwise;
}

const KNOWN_MARKS = {
  "run.started": () => mark("start", "run"),
  "run.finished": (payload) => mark("end", toneOfOutcome(payload.outcome)),
  "agent.started": () => mark("start", "agent"),
  "agent.completed": () => mark("end", "agent"),
  "agent.text": () => mark("dot", "agent"),
  "agent.tool_use": () => mark("square", "agent"),
  "agent.tool_result": (payload) => (payload.isError === true ? mark("cross", "bad") : mark("ring", "agent")),
  "agent.warning": () => mark("warn", "warn", true),
  "control.requested": () => mark("diamond", "human", true),
  "control.applied": (payload) => (payload.ok === false ? mark("cross", "bad", true) : mark("diamond", "human", true)),
  "capture.refused": () => mark("warn", "warn", true),
  "decision.requested": () => mark("diamond", "decision", true),
  "decision.answered": (payload) => mark("diamond", payload.byTimeout === true ? "decision" : "human", true),
};

function markOf({ type, payload }) {
  if (Object.hasOwn(KNOWN_MARKS, type) && payload !== null && typeof payload === "object") return KNOWN_MARKS[type](payload);
  const words = type.toLowerCase().split(/[._-]/);
  const first = words[0], last = words[words.length - 1];
  const verdict = verdictOf(payload);
  if (first === "gate") return judged(verdict, mark("ring", "plain", true), true);
  if (first === "review") return judged(verdict, mark("ring", "review", last !== "requested"), true);
  if (first === "human" || first === "handoff") return mark("diamond", "human", true);
  if (last === "paused" || last === "suspended") return mark("pause", "warn", true);
  if (last === "resumed") return mark("start", "good", true);
  if (first === "decision") return mark("square", "decision");
  if (last === "warning") return mark("warn", "warn", true);
  if (["failed", "refused", "cancelled", "canceled", "rejected", "error"].includes(last)) return mark("cross", "bad", true);
  if (last === "started") return mark("start", "plain");
  if (verdict === "bad") return mark("cross", "bad");
  if (["completed", "finished", "finalized", "committed", "ended", "exited"].includes(last)) return mark("end", "plain");
  return mark("dot", "plain");
}

// Draws a mark at (x, y); `size` is half its height.
function drawMark(context, { shape, tone }, x, y, size, colours) {
  const colour = colours[tone] || colours.plain;
  context.fillStyle = colour;
  context.strokeStyle = colour;
  context.lineWidth = 1.6;
  context.beginPath();
  const path = SHAPES[shape] || SHAPES.dot;
  path(context, x, y, size, colours);
}

const SHAPES = {
  dot(context, x, y, size) {
    context.arc(x, y, size * 0.62, 0, 2 * Math.PI);
    context.fill();
  },
  ring(context, x, y, size, colours) {
    context.arc(x, y, size * 0.68, 0, 2 * Math.PI);
    context.fillStyle = colours.paper;
    context.fill();
    context.stroke();
  },
  square(context, x, y, size) {
    context.fillRect(x - size * 0.58, y - size * 0.58, size * 1.16, size * 1.16);
  },
  diamond(context, x, y, size) {
    polygon(context, [[x, y - size], [x + size, y], [x, y + size], [x - size, y]]);
    context.fill();
  },
  start(context, x, y, size) {
    polygon(context, [[x - size * 0.55, y - size * 0.85], [x + size * 0.85, y], [x - size * 0.55, y + size * 0.85]]);
    context.fill();
  },
  end(context, x, y, size) {
    context.fillRect(x - size * 0.7, y - size * 0.7, size * 1.4, size * 1.4);
    context.fillStyle = "#fff";
    context.fillRect(x - size * 0.25, y - size * 0.25, size * 0.5, size * 0.5);
  },
  warn(context, x, y, size, colours) {
    polygon(context, [[x, y - size], [x + size, y + size * 0.8], [x - size, y + size * 0.8]]);
    context.fill();
    context.fillStyle = colours.paper;
    context.fillRect(x - 0.8, y - size * 0.35, 1.6, size * 0.6);
    context.fillRect(x - 0.8, y + size * 0.4, 1.6, 1.6);
  },
  pause(context, x, y, size) {
    context.fillRect(x - size * 0.7, y - size * 0.85, size * 0.5, size * 1.7);
    context.fillRect(x + size * 0.2, y - size * 0.85, size * 0.5, size * 1.7);
  },
  check(context, x, y, size) {
    context.arc(x, y, size, 0, 2 * Math.PI);
    context.fill();
    stroke(context, [[x - size * 0.45, y + size * 0.05], [x - size * 0.1, y + size * 0.4], [x + size * 0.5, y - size * 0.35]]);
  },
  cross(context, x, y, size) {
    context.rect(x - size * 0.92, y - size * 0.92, size * 1.84, size * 1.84);
    context.fill();
    const arm = size * 0.42;
    stroke(context, [[x - arm, y - arm], [x + arm, y + arm]]);
    stroke(context, [[x + arm, y - arm], [x - arm, y + arm]]);
  },
};

function polygon(context, points) {
  context.moveTo(points[0][0], points[0][1]);
  for (const [x, y] of points.slice(1)) context.lineTo(x, y);
  context.closePath();
}

function stroke(context, points) {
  context.strokeStyle = "#fff";
  context.beginPath();
  context.moveTo(points[0][0], points[0][1]);
  for (const [x, y] of points.slice(1)) context.lineTo(x, y);
  context.stroke();
}

const LEGEND = [
  ["start", "run", "began"],
  ["end", "good", "ended"],
  ["check", "good", "passed, approved"],
  ["cross", "bad", "failed, changes asked for"],
  ["ring", "review", "asked for, or no verdict"],
  ["pause", "warn", "paused"],
  ["diamond", "human", "a person stepped in"],
  ["square", "decision", "decided"],
  ["warn", "warn", "warning, refusal"],
  ["dot", "plain", "any other event"],
];

// What an event says, in a few words: its telling fields, each with its name where the value alone is unclear.
const TELLING = [
  "tool", "operation", "check", "name", "outcome", "result", "decision", "condition", "green", "allApprove", "action", "cause", "kind", "reason",
  "reasonCode", "errorClass", "scope", "reviewer", "role", "stage", "actor", "target", "message", "text", "inputExcerpt", "resultExcerpt",
  "requestedDecision", "resolution", "detail", "phase", "class", "model", "by", "costUsd", "durationMs",
];
const BARE = new Set(["outcome", "result", "decision", "condition", "action", "tool", "operation", "check", "message", "text", "inputExcerpt", "resultExcerpt", "detail", "requestedDecision", "resolution"]);

function gist(event, longest = 120) {
  const payload = event.payload;
  if (payload === null || typeof payload !== "object" || Array.isArray(payload)) return oneLine(JSON.stringify(payload) ?? "", longest);
  const said = [];
  const say = (name) => {
    const value = payload[name];
    if (value === undefined || value === null || typeof value === "object" || value === "") return;
    const text = name === "durationMs" ? duration(value) : name === "costUsd" ? `$${value}` : oneLine(value, 80);
    said.push(BARE.has(name) ? text : name === "durationMs" ? text : `${name} ${text}`);
  };
  if (Number.isInteger(payload.round)) said.push(`round ${payload.round}`);
  for (const name of TELLING) if (Object.hasOwn(payload, name)) say(name);
  if (!said.length) for (const name of Object.keys(payload).slice(0, 4)) say(name);
  return oneLine(said.slice(0, 5).join(" · "), longest);
}

// Behaviours that last: what opened them, what closed them, and what closed is matched by.
const OPENS = { started: "start", requested: "ask", raised: "ask", tool_use: "use", paused: "pause" };
const CLOSES = { completed: "start ask", finished: "start", ended: "start", exited: "start", failed: "start", answered: "ask", applied: "ask", resolved: "ask", tool_result: "use", resumed: "pause" };
const PAIR_IDS = ["toolUseId", "decisionId", "controlId", "effectId", "sessionId"];

// The stretches of one run's lanes: [{opening, closing}], each closed by an event of the same domain.
function stretchesOf(run) {
  const open = new Map();
  const found = [];
  for (const event of run.events) {
    if (event.type === "run.started" || event.type === "run.finished") continue;
    const dot = event.type.lastIndexOf(".");
    const domain = event.type.slice(0, dot), verb = event.type.slice(dot + 1);
    const closes = Object.hasOwn(CLOSES, verb) ? CLOSES[verb].split(" ") : [];
    for (const way of closes) {
      const waiting = open.get(`${domain} ${way}`) || [];
      const rest = [];
      for (const opening of waiting) {
        if (matches(opening, event)) found.push({ opening, closing: event });
        else rest.push(opening);
      }
      open.set(`${domain} ${way}`, rest);
    }
    if (Object.hasOwn(OPENS, verb)) {
      const key = `${domain} ${OPENS[verb]}`;
      open.set(key, [...(open.get(key) || []), event]);
    }
  }
  return found;
}

function matches(opening, closing) {
  const [a, b] = [opening.payload, closing.payload];
  if (!a || !b || typeof a !== "object" || typeof b !== "object") return true;
  const id = PAIR_IDS.find((name) => a[name] !== undefined && b[name] !== undefined);
  return id === undefined || a[id] === b[id];
}

// The rounds of a run, from what its events say: [{round, from, to}], without holes between them.
function roundsOf(run) {
  const rounds = new Map();
  for (const event of run.events) {
    const round = event.payload && typeof event.payload === "object" ? event.payload.round : undefined;
    if (!Number.isInteger(round)) continue;
    const known = rounds.get(round);
    if (known) known.to = Math.max(known.to, event.at);
    else rounds.set(round, { round, from: event.at, to: event.at });
  }
  const found = [...rounds.values()].sort((a, b) => a.from - b.from);
  for (let index = 0; index + 1 < found.length; index++) found[index].to = Math.min(found[index].to, found[index + 1].from);
  return found;
}

// The times in which a tree was paused: from each pause to the next resumption in any of its runs.
function pausesOf(events) {
  const found = [];
  let since = null;
  for (const event of events) {
    const verb = event.type.slice(event.type.lastIndexOf(".") + 1);
    if ((verb === "paused" || verb === "suspended") && since === null) since = event;
    else if (verb === "resumed" && since !== null) {
      found.push({ from: since.at, to: event.at });
      since = null;
    }
  }
  return found;
}
