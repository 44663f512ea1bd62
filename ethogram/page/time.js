// Time as a place on the screen: zoom, ticks, and long quiet times drawn short.

const QUIET_SHARE = 0.12;      // a time without events this much of the whole is quiet, where it is folded
const FOLDED_SHARE = 0.025;    // and takes this much of the width then

const SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE, DAY = 24 * HOUR;
const STEPS = [
  1, 2, 5, 10, 20, 50, 100, 200, 500,
  SECOND, 2 * SECOND, 5 * SECOND, 10 * SECOND, 15 * SECOND, 30 * SECOND,
  MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE,
  HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY, 14 * DAY, 30 * DAY, 90 * DAY, 365 * DAY,
];

// Which stretches of time hold no event and no work, and are long beside the whole. `busy`: [[from, to]] of work.
function quietTimes(times, busy, from, to) {
  const edges = [...times.map((at) => [at, at]), ...busy].sort((a, b) => a[0] - b[0]);
  const quiet = [];
  let until = from;
  for (const [start, end] of edges) {
    if (start - until > Math.max(QUIET_SHARE * (to - from), MINUTE)) quiet.push([until, start]);
    until = Math.max(until, end);
  }
  return quiet;
}

// Times to units 0..1 over the whole, piecewise straight; quiet times are short.
class TimeScale {
  constructor(from, to, quiet) {
    if (to <= from) { from -= SECOND / 2; to = from + SECOND; }
    this.from = from;
    this.to = to;
    this.quiet = quiet;
    const folded = this.quiet.reduce((sum, [a, b]) => sum + (b - a), 0);
    const open = to - from - folded || 1;
    const rate = (1 - FOLDED_SHARE * this.quiet.length) / open;
    this.pieces = [];
    let at = from, unit = 0;
    const piece = (until, length) => {
      if (until > at) this.pieces.push({ t0: at, t1: until, u0: unit, u1: unit + length });
      at = until;
      unit += length;
    };
    for (const [a, b] of this.quiet) {
      piece(a, (a - at) * rate);
      piece(b, FOLDED_SHARE);
    }
    piece(to, (to - at) * rate);
    this.view = [0, 1];
    this.left = 0;
    this.width = 100;
  }

  unitOf(time) {
    const pieces = this.pieces;
    if (time <= pieces[0].t0) return 0;
    if (time >= pieces[pieces.length - 1].t1) return 1;
    const piece = pieces[firstIndex(pieces, (each) => each.t1 >= time)];
    return piece.u0 + (piece.u1 - piece.u0) * ((time - piece.t0) / (piece.t1 - piece.t0));
  }

  timeOf(unit) {
    const pieces = this.pieces;
    const index = Math.min(firstIndex(pieces, (each) => each.u1 >= unit), pieces.length - 1);
    const piece = pieces[index];
    const share = (unit - piece.u0) / (piece.u1 - piece.u0 || 1);
    return piece.t0 + (piece.t1 - piece.t0) * Math.min(1, Math.max(0, share));
  }

  x(time) {
    const [a, b] = this.view;
    return this.left + ((this.unitOf(time) - a) / (b - a)) * this.width;
  }

  timeAt(x) {
    const [a, b] = this.view;
    return this.timeOf(a + ((x - this.left) / this.width) * (b - a));
  }

  show(a, b) {
    const length = Math.min(1, Math.max(1e-7, b - a));
    const start = Math.min(1 - length, Math.max(0, a));
    this.view = [start, start + length];
  }

  zoom(factor, x) {
    const [a, b] = this.view;
    const at = a + ((x - this.left) / this.width) * (b - a);
    this.show(at - (at - a) * factor, at + (b - at) * factor);
  }

  pan(pixels) {
    const [a, b] = this.view;
    const by = (pixels / this.width) * (b - a);
    this.show(a + by, b + by);
  }

  // Ticks at round times, none closer than `apart` pixels to the one before it.
  ticks(apart) {
    const [first, last] = [this.timeAt(this.left), this.timeAt(this.left + this.width)];
    const shown = this.pieces.filter((each) => each.t1 > first && each.t0 < last);
    const rate = Math.max(...shown.map((each) => (this.x(each.t1) - this.x(each.t0)) / (each.t1 - each.t0)));
    const step = STEPS.find((each) => each * rate >= apart) || STEPS[STEPS.length - 1];
    const ticks = [];
    let before = -Infinity;
    for (const piece of shown) {
      // Nothing happened in a quiet time: it has no ticks.
      if (this.quiet.some(([a, b]) => a === piece.t0 && b === piece.t1)) continue;
      const until = Math.min(piece.t1, last);
      for (let at = Math.ceil(Math.max(piece.t0, first) / step) * step; at <= until; at += step) {
        const x = this.x(at);
        if (x - before < apart) continue;
        before = x;
        ticks.push({ at, x, step });
      }
    }
    return ticks;
  }
}

// The first index for which a test holds that holds for all behind it; the length where it holds for none.
function firstIndex(items, holds) {
  let low = 0, high = items.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(items[middle])) high = middle;
    else low = middle + 1;
  }
  return low;
}

function pad(number, digits = 2) {
  return String(number).padStart(digits, "0");
}

// Times are shown as UTC, as logs write them.
function tickLabel(at, step, withDate) {
  const time = new Date(at);
  const day = `${time.getUTCDate()} ${MONTHS[time.getUTCMonth()]}`;
  const clock = `${pad(time.getUTCHours())}:${pad(time.getUTCMinutes())}`;
  if (step >= DAY) return day;
  if (step >= MINUTE) return withDate ? `${day} ${clock}` : clock;
  const seconds = `${clock}:${pad(time.getUTCSeconds())}`;
  return step >= SECOND ? seconds : `${seconds}.${pad(time.getUTCMilliseconds(), 3)}`;
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

function dateTime(at) {
  const time = new Date(at);
  return `${time.getUTCFullYear()}-${pad(time.getUTCMonth() + 1)}-${pad(time.getUTCDate())} ` +
    `${pad(time.getUTCHours())}:${pad(time.getUTCMinutes())}:${pad(time.getUTCSeconds())}`;
}

function duration(ms) {
  if (ms < SECOND) return `${Math.round(ms)} ms`;
  if (ms < MINUTE) return `${Math.floor(ms / 100) / 10} s`;
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)} min ${pad(Math.floor((ms % MINUTE) / SECOND))} s`;
  if (ms < DAY) return `${Math.floor(ms / HOUR)} h ${pad(Math.floor((ms % HOUR) / MINUTE))} min`;
  return `${Math.floor(ms / DAY)} d ${pad(Math.floor((ms % DAY) / HOUR))} h`;
}

function count(number) {
  if (number < 1000) return String(number);
  for (const [size, unit] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
    if (number >= size) return `${(number / size).toFixed(1)}${unit}`;
  }
  return String(number);
}
