// The drawing: one canvas, of which only the rows in view are drawn. It knows rows and a scale, no elements.

const AXIS_HEIGHT = 30;
const TONES = ["run", "agent", "good", "bad", "warn", "human", "review", "decision", "plain"];
const CLOSE = 9;           // marks closer than this, in pixels, are drawn as ticks

function readColours() {
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(`--${name}`).trim();
  const colours = { paper: read("paper"), ink: read("ink"), soft: read("soft"), line: read("line"), band: read("band"), bandText: read("band-text"), focus: read("focus"), pause: read("pause"), quiet: read("quiet"), open: read("plain") };
  for (const tone of TONES) colours[tone] = read(tone);
  return colours;
}

// `view`: rows, scale, top (scrolled), height, width, labelWidth, narrow, colours, selected, hits, pauses, human.
function drawPlot(context, view) {
  const { colours, width, height, scale } = view;
  context.clearRect(0, 0, width, height);
  context.save();
  context.beginPath();
  context.rect(0, AXIS_HEIGHT, width, height - AXIS_HEIGHT);
  context.clip();
  context.translate(0, AXIS_HEIGHT - view.top);
  const from = view.top, to = view.top + height - AXIS_HEIGHT;
  const ticks = scale.ticks(view.narrow ? 64 : 84);
  const shown = view.rows.slice(
    firstIndex(view.rows, (row) => row.y + row.height > from),
    firstIndex(view.rows, (row) => row.y >= to),
  );
  context.save();
  clipToPlot(context, view, from, to);
  drawBands(context, view, from, to);
  context.fillStyle = colours.line;
  for (const { x } of ticks) context.fillRect(Math.round(x), from, 1, to - from);
  drawQuiet(context, view, from, to);
  drawHuman(context, view, from, to);
  context.restore();
  for (const row of shown) {
    context.fillStyle = colours.line;
    context.fillRect(0, row.y + row.height - 1, width, row.kind === "run" ? 1 : 0.5);
    context.save();
    clipToPlot(context, view, row.y, row.y + row.height);
    drawRow(context, view, row);
    context.restore();
  }
  drawSelected(context, view, from, to);
  context.restore();
  drawAxis(context, view, ticks);
}

function clipToPlot(context, view, top, bottom) {
  context.beginPath();
  context.rect(view.scale.left - 10, top, view.scale.width + 34, bottom - top);
  context.clip();
}

function drawBands(context, view, from, to) {
  const { scale, colours } = view;
  for (const row of view.rows) {
    if (row.kind !== "rounds") continue;
    const runRow = view.rows[row.index - 1];
    const top = Math.max(row.y, from), bottom = Math.min(runRow.bottom, to);
    if (bottom <= top) continue;
    row.rounds.forEach(({ from: start, to: end }, index) => {
      const x = scale.x(start);
      context.fillStyle = colours.band;
      context.globalAlpha = index % 2 ? 0.45 : 1;
      context.fillRect(x, top, Math.max(2, scale.x(end) - x), bottom - top);
    });
    context.globalAlpha = 1;
  }
  for (const { from: start, to: end } of view.pauses) {
    const x = scale.x(start);
    hatch(context, x, from, Math.max(3, scale.x(end) - x), to - from, colours.pause);
  }
}

function hatch(context, x, y, width, height, colour) {
  context.save();
  context.beginPath();
  context.rect(x, y, width, height);
  context.clip();
  context.strokeStyle = colour;
  context.lineWidth = 1.5;
  context.beginPath();
  const left = Math.max(x, -20), right = Math.min(x + width, 4000);
  for (let at = left - height - ((left - height) % 8); at < right; at += 8) {
    context.moveTo(at, y + height);
    context.lineTo(at + height, y);
  }
  context.stroke();
  context.restore();
}

function drawQuiet(context, view, from, to) {
  context.strokeStyle = view.colours.quiet;
  context.lineWidth = 1.2;
  for (const [start, end] of view.scale.quiet) {
    const middle = (view.scale.x(start) + view.scale.x(end)) / 2;
    for (const shift of [-2.5, 2.5]) {
      context.beginPath();
      for (let y = from - (from % 12); y <= to + 12; y += 6) {
        context.lineTo(middle + shift + ((y / 6) % 2 ? 2.5 : -2.5), y);
      }
      context.stroke();
    }
  }
}

function drawHuman(context, view, from, to) {
  context.strokeStyle = view.colours.human;
  context.globalAlpha = 0.55;
  context.setLineDash([4, 4]);
  context.lineWidth = 1.2;
  for (const { at } of view.human) {
    const x = Math.round(view.scale.x(at)) + 0.5;
    context.beginPath();
    context.moveTo(x, from);
    context.lineTo(x, to);
    context.stroke();
  }
  context.setLineDash([]);
  context.globalAlpha = 1;
}

// Where in a row its marks stand: on narrow screens the label is above them.
function middleOf(row, narrow) {
  const extra = narrow ? NARROW_EXTRA[row.kind] : 0;
  return row.y + extra + (row.height - extra) / 2;
}

function drawRow(context, view, row) {
  const y = middleOf(row, view.narrow);
  if (row.kind === "rounds") drawRounds(context, view, row, y);
  else if (row.kind === "run") drawRunBar(context, view, row, y);
  else {
    for (const { opening, closing } of row.stretches || []) {
      const x = view.scale.x(opening.at);
      context.fillStyle = view.colours[opening.mark.tone];
      context.globalAlpha = 0.3;
      context.fillRect(x, y - 4, Math.max(1.5, view.scale.x(closing.at) - x), 8);
      context.globalAlpha = 1;
    }
    drawMarks(context, view, row, y, row.kind === "landmarks" ? 7.5 : 6);
  }
}

function drawRounds(context, view, row, y) {
  const { scale, colours } = view;
  context.font = `600 11px ${FONT}`;
  context.textBaseline = "middle";
  for (const { round, from, to } of row.rounds) {
    const x = scale.x(from), end = Math.max(x + 2, scale.x(to));
    context.fillStyle = colours.bandText;
    context.globalAlpha = 0.8;
    context.fillRect(x, y - 8, 2, 16);
    context.globalAlpha = 1;
    const visible = Math.max(x, scale.left) + 7;
    const room = end - visible - 4;
    const text = [`Round ${round}`, `R${round}`, String(round)].find((each) => context.measureText(each).width <= room);
    if (text) context.fillText(text, visible, y + 0.5);
  }
}

function drawRunBar(context, view, row, y) {
  const { scale, colours } = view;
  const [from, to] = ownSpan(row.run);
  if (from > to) return;
  const x = scale.x(from), end = Math.max(scale.x(to), x + 4);
  const tone = outcomeTone(row.run);
  const height = row.open ? 18 : 20;
  context.globalAlpha = row.open ? 0.9 : 0.28;
  if (tone === "open") {
    const fade = context.createLinearGradient(x, 0, end + 1, 0);
    fade.addColorStop(0, colours.run);
    fade.addColorStop(Math.min(0.999, Math.max(0, 1 - 40 / (end - x + 41))), colours.run);
    fade.addColorStop(1, colours.paper);
    context.fillStyle = fade;
  } else context.fillStyle = colours[tone];
  context.beginPath();
  context.roundRect(x, y - height / 2, end - x, height, 4);
  context.fill();
  context.globalAlpha = 1;
  if (!row.open) drawMarks(context, view, row, y, 6);
  else drawRunText(context, view, row, x, end, y);
}

function drawRunText(context, view, row, x, end, y) {
  const { scale, colours } = view;
  const text = `${outcomeOf(row.run)}${row.run.overview.durationMs === undefined ? "" : ` · ${duration(row.run.overview.durationMs)}`}`;
  context.font = `600 11px ${FONT}`;
  context.textBaseline = "middle";
  const wide = context.measureText(text).width;
  const left = Math.max(x, scale.left), right = Math.min(end, scale.left + scale.width);
  if (right - left > wide + 16) {
    context.fillStyle = "#fff";
    context.fillText(text, left + 8, y + 0.5);
  } else if (end >= scale.left && scale.left + scale.width - end > wide + 10) {
    context.fillStyle = colours.soft;
    context.fillText(text, end + 7, y + 0.5);
  } else if (x <= scale.left + scale.width && x - scale.left > wide + 10) {
    context.fillStyle = colours.soft;
    context.fillText(text, x - wide - 7, y + 0.5);
  }
}

const FONT = 'system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif';

// Marks of a row in view. Marks that would cover each other are one mark with a number; long crowds are ticks, among
// which what matters most keeps its shape.
function drawMarks(context, view, row, y, size) {
  const { scale } = view;
  const first = firstIndex(row.events, (event) => scale.x(event.at) >= scale.left - 10);
  let crowd = [];
  view.numbers = [];
  const flush = () => {
    if (crowd.length) drawCrowd(context, view, crowd, y, size);
    crowd = [];
  };
  for (let index = first; index < row.events.length; index++) {
    const event = row.events[index];
    const x = scale.x(event.at);
    if (x > scale.left + scale.width + 10) break;
    if (crowd.length && x - crowd[crowd.length - 1].x >= CLOSE) flush();
    crowd.push({ event, x });
  }
  flush();
  // Numbers go over marks: the next mark may be close.
  for (const { number, x } of view.numbers) drawNumber(context, view, number, x, y - size);
}

function drawCrowd(context, view, crowd, y, size) {
  const extent = crowd[crowd.length - 1].x - crowd[0].x;
  if (extent <= CLOSE * 1.6) {
    const most = crowd.reduce((best, each) => (weightOf(each, view) > weightOf(best, view) ? each : best));
    drawShape(context, view, most, y, size);
    if (crowd.length > 1) view.numbers.push({ number: crowd.length, x: most.x + size });
    return;
  }
  let lastTick = -Infinity, lastTone = "";
  for (const { event, x } of crowd) {
    if (x - lastTick < 0.75 && event.mark.tone === lastTone) continue;
    context.globalAlpha = view.hits && !view.hits.has(event) ? 0.15 : 0.85;
    context.fillStyle = view.colours[event.mark.tone] || view.colours.plain;
    context.fillRect(x - 0.5, y - size, 1, size * 2);
    [lastTick, lastTone] = [x, event.mark.tone];
  }
  let free = -Infinity;
  for (const each of crowd) {
    if (weightOf(each, view) < 6 || each.x < free) continue;
    drawShape(context, view, each, y, size);
    free = each.x + CLOSE;
  }
}

const WEIGHTS = { bad: 8, warn: 7, human: 6, good: 4, review: 3, decision: 2, run: 1, agent: 1, plain: 0 };

function weightOf({ event }, view) {
  return (WEIGHTS[event.mark.tone] || 0) + (view.hits && view.hits.has(event) ? 10 : 0);
}

function drawShape(context, view, { event, x }, y, size) {
  const { colours } = view;
  const hit = view.hits && view.hits.has(event);
  if (hit) {
    context.globalAlpha = 0.4;
    context.fillStyle = colours.focus;
    context.beginPath();
    context.arc(x, y, size + 4, 0, 2 * Math.PI);
    context.fill();
  }
  context.globalAlpha = view.hits && !hit ? 0.15 : 1;
  // A rim of paper keeps a mark apart from the bar or the mark beneath it.
  context.fillStyle = colours.paper;
  drawRim(context, x, y, size);
  drawMark(context, event.mark, x, y, size, colours);
  context.globalAlpha = 1;
}

function drawNumber(context, view, number, x, y) {
  context.font = `700 9px ${FONT}`;
  context.textBaseline = "middle";
  context.lineWidth = 3;
  context.strokeStyle = view.colours.paper;
  context.strokeText(count(number), x, y + 1);
  context.fillStyle = view.colours.soft;
  context.fillText(count(number), x, y + 1);
}

function drawRim(context, x, y, size) {
  context.beginPath();
  context.arc(x, y, size + 0.6, 0, 2 * Math.PI);
  const alpha = context.globalAlpha;
  context.globalAlpha = alpha * 0.55;
  context.fill();
  context.globalAlpha = alpha;
}

function drawSelected(context, view, from, to) {
  const { selected, scale, colours } = view;
  if (!selected) return;
  const x = scale.x(selected.event.at);
  if (x < scale.left - 8 || x > scale.left + scale.width + 8) return;
  context.fillStyle = colours.focus;
  context.globalAlpha = 0.6;
  context.fillRect(Math.round(x), from, 1, to - from);
  context.globalAlpha = 1;
  if (!selected.row) return;
  context.strokeStyle = colours.focus;
  context.lineWidth = 2.5;
  context.beginPath();
  context.arc(x, middleOf(selected.row, view.narrow), 10, 0, 2 * Math.PI);
  context.stroke();
}

function drawAxis(context, view, ticks) {
  const { scale, colours, width } = view;
  context.fillStyle = colours.paper;
  context.fillRect(0, 0, width, AXIS_HEIGHT);
  context.fillStyle = colours.line;
  context.fillRect(0, AXIS_HEIGHT - 1, width, 1);
  context.font = `11px ${FONT}`;
  context.textBaseline = "middle";
  const taken = [];
  for (const [start, end] of scale.quiet) {
    const middle = (scale.x(start) + scale.x(end)) / 2;
    if (middle < scale.left || middle > scale.left + scale.width) continue;
    const text = view.narrow ? duration(end - start) : `${duration(end - start)} quiet`;
    const wide = context.measureText(text).width;
    const at = Math.min(Math.max(middle - wide / 2, scale.left), width - wide - 2);
    context.fillStyle = colours.quiet;
    if (!taken.some(([from, to]) => at < to && at + wide > from)) context.fillText(text, at, 13);
    taken.push([at - 8, at + wide + 8]);
  }
  let day = "";
  for (const { at, x, step } of ticks) {
    if (x < scale.left - 1 || x > scale.left + scale.width + 1) continue;
    const today = new Date(at).toISOString().slice(0, 10);
    const text = tickLabel(at, step, today !== day);
    const wide = context.measureText(text).width;
    context.fillStyle = colours.soft;
    context.fillRect(Math.round(x), AXIS_HEIGHT - 6, 1, 5);
    if (x + wide > width || taken.some(([from, to]) => x < to && x + wide > from)) continue;
    context.fillStyle = today === day ? colours.soft : colours.ink;
    context.fillText(text, x, 13);
    day = today;
    taken.push([x - 10, x + wide + 10]);
  }
}

// The whole of the time as a strip: how much happened when, and what part of it is in view.
function drawMap(context, view, events, width, height) {
  const { scale, colours } = view;
  context.clearRect(0, 0, width, height);
  const bins = new Float32Array(Math.max(1, Math.ceil((width - 2) / 3)));
  const place = (event) => scale.unitOf(event.at) * (width - 2) + 1;
  for (const event of events) bins[Math.min(bins.length - 1, Math.floor(place(event) / 3))] += 1;
  const most = Math.max(1, ...bins);
  context.fillStyle = colours.soft;
  context.globalAlpha = 0.5;
  bins.forEach((number, index) => {
    if (!number) return;
    const tall = 3 + (Math.sqrt(number) / Math.sqrt(most)) * (height - 10);
    context.fillRect(1 + index * 3, height - tall, 2, tall);
  });
  context.globalAlpha = 1;
  for (const event of events) {
    if (!event.mark.landmark || event.mark.tone === "review") continue;
    context.fillStyle = colours[event.mark.tone];
    context.fillRect(place(event) - 1, 0, 2, 5);
  }
  const [a, b] = scale.view;
  context.fillStyle = colours.focus;
  context.globalAlpha = 0.12;
  if (b - a < 0.9999) context.fillRect(a * width, 0, Math.max(3, (b - a) * width), height);
  context.globalAlpha = 0.9;
  if (b - a < 0.9999) {
    context.fillRect(a * width, 0, 2, height);
    context.fillRect(b * width - 2, 0, 2, height);
  }
  context.globalAlpha = 1;
}
