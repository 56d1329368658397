/* view.js - the interactive view of memory: view_parts.h says what its data are.
 * It draws a map of each run on a canvas; what was not written one by one is
 * drawn as the grid that the data hold, and named as such. */
(function () {
'use strict';
const script = document.currentScript.previousElementSibling;
const root = script.previousElementSibling;
const data = JSON.parse(script.textContent);
const $ = (name) => root.querySelector(name);

const TYPES = {u8: Uint8Array, u32: Uint32Array, f64: Float64Array};
const CIVIDIS = ['#fdea45', '#dccc5c', '#bcaf6f', '#9b9575', '#7c7b78',
  '#5e6472', '#414d6b', '#21385f', '#00224e'];
const SITES = ['#08306b', '#fd8d3c', '#238b45', '#fee391', '#8c2d04',
  '#41b6c4', '#6a51a3', '#d9b3e0', '#a9afb8'];
const OTHERS = 8; /* the colour of all further sites */
const FREE = '#e3e5e9', REST = '#5b6270', INK = '#16181d', LINE = '#b84a00';
const LEFT_OUT = 1; /* the node of the stacks that have no room */
const ROWS = 20;    /* of the table of holders */

/* -- data ------------------------------------------------------------------ */

function numbers(column) {
  const type = Object.keys(column)[0], text = atob(column[type]);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return new TYPES[type](bytes.buffer);
}

const nodes = numbers(data.nodes), times = numbers(data.times);
const parentOf = (n) => nodes[5 * n], siteOf = (n) => nodes[5 * n + 4] || n;
const nodeCount = nodes.length / 5, events = data.events;
const isTimed = times.length > 0;

function openRun(run) {
  for (const key in run)
    if (run[key] && typeof run[key] == 'object') run[key] = numbers(run[key]);
  const n = run.from.length;
  run.x0 = new Float64Array(n);
  run.x1 = new Float64Array(n);
  run.passes = new Uint8Array(n).fill(1);
  run.marked = null; /* the highlighted blocks */
  run.ink = new Uint8Array(n);
  run.rest = run.blocks - run.written;
  run.highest = run.reservedMost.reduce((a, b) => Math.max(a, b), 0);
  return run;
}

const runs = data.runs.map(openRun);
const hasStacks = nodeCount > 2;
const sizeOf = (r, i) => r.size[r.kind[i]];
const askedBytes = (r, i) => r.requested[r.kind[i]];
const nodeAt = (r, i) => r.node[r.kind[i]];
const bottom = (r, i) => r.y[i] * r.unit;
const isLive = (r, i, event) => r.from[i] <= event && event < r.to[i];
const first = (c) => Math.floor(c * events / data.columns);

/* The last index at which the ascending values are at most x. */
function find(values, x) {
  let low = 0, high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= x) low = middle + 1; else high = middle;
  }
  return Math.max(0, low - 1);
}

/* -- words ----------------------------------------------------------------- */

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'];

function bytes(n) {
  let unit = 0;
  while (n >= 1024 && unit < 6) { n /= 1024; unit++; }
  const digits = unit == 0 || n >= 1000 ? 0 : n >= 100 ? 1 : n >= 10 ? 2 : 3;
  return n.toFixed(digits) + ' ' + UNITS[unit];
}

/* "1.5 GiB" of "1.500 GiB". */
const short = (size) => size.replace(/^[\d.]+/, parseFloat);

function seconds(s) {
  const digits = (x) => x >= 100 ? x.toFixed(0) : x.toPrecision(3);
  return s == 0 ? '0 s' : s < 1e-3 ? digits(s * 1e6) + ' \u00b5s'
    : s < 1 ? digits(s * 1e3) + ' ms' : digits(s) + ' s';
}

const count = (n) => n.toLocaleString('en');
const plural = (n, word) => count(n) + ' ' + word + (n == 1 ? '' : 's');

/* "1 MiB" in bytes; NaN if it is no size. */
function parseSize(text) {
  const found = /^\s*([\d.]+)\s*([kmgtpe]?)(i?b)?\s*$/i.exec(text);
  return found ? found[1] * 1024 ** ' kmgtpe'.indexOf(
    found[2].toLowerCase() || ' ') : NaN;
}

function frame(n) {
  if (n == 0) return 'without a stack';
  if (n == LEFT_OUT) return 'stacks that have no room in this page';
  const file = data.strings[nodes[5 * n + 2]];
  const place = file.split('/').pop() + ':' + nodes[5 * n + 3];
  return data.strings[nodes[5 * n + 1]] + (file && file != '??' ?
    ' (' + place + ')' : '');
}

/* The frames of a stack, the innermost first. */
function frames(n) {
  const list = [];
  for (; n > 0; n = n == LEFT_OUT ? 0 : parentOf(n)) list.push(n);
  return list;
}

function nameOf(n) {
  const site = siteOf(n);
  return frame(site) + (site != n ? ', in ' + frame(n).split(' (')[0] : '');
}

const streamName = (row) => 'stream ' + data.streams[row];
const poolName = (row) => data.pools[row];
const at = (event) => 'event ' + count(event) +
  (isTimed ? ' (' + seconds(timeAt(event)) + ')' : '');

function lifetime(r, i) {
  const end = r.to[i] < events, from = r.asked.length ? r.asked[i] : r.from[i];
  const span = isTimed ? ', ' + seconds((r.died[i] - r.born[i]) * data.tick)
    : '';
  return (from < data.initial ? 'allocated before the recording' :
    'allocated at ' + at(from)) +
    (from != r.from[i] ? ', moved here at ' + at(r.from[i]) : '') + ', ' +
    (end ? 'freed or moved away at ' + at(r.to[i]) : 'not freed') +
    '; it lives ' + plural(r.to[i] - r.from[i], 'event') + span;
}

function describe(r, i) {
  const kind = r.kind[i], size = r.size[kind], asked = r.requested[kind];
  return 'Block of ' + bytes(asked) +
    (size != asked ? ' (' + bytes(size) + ' allocated)' : '') + ', ' +
    streamName(r.stream[kind]) + ', ' + poolName(r.pool[kind]) + ', ' +
    lifetime(r, i).replace('freed or moved away',
      r.asked.length ? 'freed or moved away' : 'freed') + '.' +
    (hasStacks ? ' Held by ' + nameOf(r.node[kind]) + '.' : '');
}

/* -- state ----------------------------------------------------------------- */

const tallest = Math.max(...runs.map((r) => r.bytes));
const highest = Math.max(...runs.map((r) => r.highest));
const state = {
  mode: 'address', axis: 'event', stream: '', pool: '', stack: '', least: '',
  most: '', colour: hasStacks ? 'site' : data.bySize ? 'size' : 'lifetime',
  x0: 0, x1: events, y0: 0, y1: tallest, moment: data.peak, cursor: null,
  picked: null, held: null, frame: 0,
};
const isStacked = () => state.mode == 'stacked';
const isByTime = () => state.axis == 'time';
const maxX = () => isByTime() ? times[data.columns] * data.tick : events;
const maxY = () => isStacked() ? highest * 1.04 : tallest;

/* The time of an event in seconds, as exact as the columns are. */
function timeAt(event) {
  const c = columnAt(event);
  const from = first(c), to = Math.max(first(c + 1), from + 1);
  const part = (event - from) / (to - from);
  return (times[c] + (times[c + 1] - times[c]) * part) * data.tick;
}

const xOf = (event) => isByTime() ? timeAt(event) : event;

/* The event at a place on the axis. */
function eventAt(x) {
  let event = x;
  if (isByTime()) {
    const tick = x / data.tick, c = Math.min(find(times, tick),
      data.columns - 1);
    const wide = times[c + 1] - times[c];
    event = first(c) + (wide ? (tick - times[c]) / wide : 0) *
      (first(c + 1) - first(c));
  }
  return Math.max(0, Math.min(events - 1, Math.floor(event)));
}

function place(r) {
  const timed = isByTime();
  for (let i = 0; i < r.from.length; i++) {
    r.x0[i] = timed ? r.born[i] * data.tick : r.from[i];
    r.x1[i] = timed ? r.died[i] * data.tick : r.to[i];
  }
}

/* The column that has the event. */
const columnAt = (event) => Math.min(data.columns - 1, Math.max(0,
  Math.ceil((Math.floor(event) + 1) * data.columns / events) - 1));

/* -- filters --------------------------------------------------------------- */

function hasText(n, text) {
  return frames(n).some((f) => f > LEFT_OUT &&
    (data.strings[nodes[5 * f + 1]].includes(text) ||
     (data.strings[nodes[5 * f + 2]] + ':' + nodes[5 * f + 3])
       .includes(text)));
}

const isFiltered = () => ['stream', 'pool', 'stack', 'least', 'most'].some(
  (key) => state[key] !== '');

function filter() {
  const seen = new Map();
  const has = (n) => {
    if (!seen.has(n)) seen.set(n, hasText(n, state.stack));
    return seen.get(n);
  };
  const least = parseSize(state.least) || 0;
  const most = state.most ? parseSize(state.most) : Infinity;
  for (const r of runs) {
    const passes = Array.from(r.size, (size, k) =>
      (state.stream === '' || r.stream[k] == state.stream) &&
      (state.pool === '' || r.pool[k] == state.pool) &&
      r.requested[k] >= least && !(r.requested[k] > most) &&
      (!state.stack || has(r.node[k])));
    for (let i = 0; i < r.passes.length; i++)
      r.passes[i] = passes[r.kind[i]];
  }
}

/* -- colours --------------------------------------------------------------- */

/* The sites with the largest areas, at most as many as there are colours. */
function largestSites() {
  const areas = new Map();
  for (const r of runs)
    for (let i = 0; i < r.from.length; i++) {
      const site = siteOf(nodeAt(r, i));
      areas.set(site, (areas.get(site) || 0) +
        sizeOf(r, i) * (r.to[i] - r.from[i]));
    }
  return [...areas].sort((a, b) => b[1] - a[1]).slice(0, OTHERS)
    .map((entry) => entry[0]);
}

const sites = hasStacks ? largestSites() : [];
const levelOf = (r, i) => Math.log2(state.colour == 'size' ? sizeOf(r, i) :
  Math.max(1, r.to[i] - (r.asked.length ? r.asked[i] : r.from[i])));
let levels = [0, 1];

function findLevels() {
  levels = [Infinity, -Infinity];
  for (const r of runs)
    for (let i = 0; i < r.from.length; i++) {
      levels[0] = Math.min(levels[0], levelOf(r, i));
      levels[1] = Math.max(levels[1], levelOf(r, i));
    }
  if (!(levels[1] > levels[0])) levels = [levels[0] - 1, levels[0]];
}

const palette = () => state.colour == 'site' ? SITES : CIVIDIS;

function colour() {
  findLevels();
  const rank = new Map(sites.map((site, i) => [site, i]));
  for (const r of runs) {
    for (let i = 0; i < r.ink.length; i++) {
      const part = (levelOf(r, i) - levels[0]) / (levels[1] - levels[0]);
      const known = rank.get(siteOf(nodeAt(r, i)));
      r.ink[i] = state.colour != 'site' ? Math.round(part * 8) :
        known === undefined ? OTHERS : known;
    }
    r.order = Uint32Array.from(r.ink.keys()).sort((a, b) =>
      r.ink[a] - r.ink[b] || a - b);
  }
  writeKey();
}

function keyItem(ink, words) {
  const item = document.createElement('span');
  const box = document.createElement('i');
  box.style.background = ink;
  item.append(box, words);
  $('.v-key').append(item, ' ');
}

function writeKey() {
  const amount = state.colour == 'size' ? (p) => bytes(2 ** p) :
    (p) => plural(Math.round(2 ** p), 'event');
  $('.v-key').textContent = '';
  if (state.colour == 'site')
    sites.forEach((site, i) => keyItem(SITES[i], frame(site)));
  else
    [0, 4, 8].forEach((i) => keyItem(CIVIDIS[i], amount(levels[0] +
      (levels[1] - levels[0]) * i / 8)));
  if (state.colour == 'site') keyItem(SITES[OTHERS], 'other code');
  keyItem(FREE, 'reserved and free');
  keyItem('#fff', 'not reserved');
  if (runs.some((r) => r.rest)) keyItem(REST, 'added up in cells');
}

/* -- drawing --------------------------------------------------------------- */

/* The place of the map on its canvas, and the scales. */
function frameOf(r) {
  const w = r.canvas.clientWidth, h = r.canvas.clientHeight;
  const p = {l: w < 500 ? 56 : 66, t: 46, w: 0, h: 0};
  p.w = w - p.l - 10;
  p.h = h - p.t - 26;
  p.x = (x) => p.l + (x - state.x0) / (state.x1 - state.x0) * p.w;
  p.y = (y) => p.t + p.h - (y - state.y0) / (state.y1 - state.y0) * p.h;
  p.atX = (px) => state.x0 + (px - p.l) / p.w * (state.x1 - state.x0);
  p.atY = (py) => state.y0 + (p.t + p.h - py) / p.h * (state.y1 - state.y0);
  return p;
}

function sharp(canvas, w, h) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.max(1, Math.round(w * ratio));
  canvas.height = Math.max(1, Math.round(h * ratio));
  const c = canvas.getContext('2d');
  c.setTransform(ratio, 0, 0, ratio, 0, 0);
  c.font = '12px system-ui, sans-serif';
  return c;
}

/* A step of about `share` of the range: 1, 2 or 5 times a power of ten, or a
 * power of two. */
function stepOf(range, share, binary) {
  const raw = range * share;
  if (binary) return 2 ** Math.ceil(Math.log2(raw));
  const ten = 10 ** Math.floor(Math.log10(raw));
  return ten * [1, 2, 5, 10].find((m) => m * ten >= raw);
}

function drawAxes(c, p) {
  const stepY = stepOf(state.y1 - state.y0, 30 / p.h, true);
  const stepX = Math.max(stepOf(state.x1 - state.x0, 90 / p.w, false),
    isByTime() ? 0 : 1);
  c.fillStyle = '#333';
  c.strokeStyle = '#8889';
  c.lineWidth = 1;
  c.strokeRect(p.l - 0.5, p.t - 0.5, p.w + 1, p.h + 1);
  c.textAlign = 'right';
  for (let y = Math.ceil(state.y0 / stepY) * stepY; y <= state.y1; y += stepY)
    c.fillText(short(bytes(y)), p.l - 5, p.y(y) + 4, p.l - 6);
  c.textAlign = 'center';
  for (let x = Math.ceil(state.x0 / stepX) * stepX; x <= state.x1; x += stepX)
    c.fillText(isByTime() ? seconds(x) : count(x), Math.min(Math.max(p.x(x),
      p.l + 12), p.l + p.w - 26), p.t + p.h + 16);
}

/* A curve of columns over the x range [from, to], as the most in each pixel. */
function traceCurve(c, values, l, w, from, to, y) {
  let last = 0;
  for (let px = 0; px <= w; px++) {
    const begin = eventAt(from + (to - from) * px / w);
    const end = eventAt(from + (to - from) * (px + 1) / w);
    let most = 0;
    for (let k = columnAt(begin); k <= Math.max(columnAt(begin),
      columnAt(end) - 1); k++) most = Math.max(most, values[k]);
    if (px == 0) c.moveTo(l, y(most));
    else if (most != last) c.lineTo(l + px, y(last));
    if (px && most != last) c.lineTo(l + px, y(most));
    last = most;
  }
  c.lineTo(l + w, y(last));
}

function strokeCurve(c, values, p, from, to, y, ink, dashes) {
  c.beginPath();
  traceCurve(c, values, p.l, p.w, from, to, y);
  c.strokeStyle = ink;
  c.lineWidth = 1.4;
  c.setLineDash(dashes);
  c.stroke();
  c.setLineDash([]);
}

/* The whole run in small, above the map; the part that the map shows is framed. */
function drawOverview(c, r, p) {
  const y = (bytes) => 36 - bytes / highest * 30, full = maxX();
  c.beginPath();
  traceCurve(c, r.allocatedMost, p.l, p.w, 0, full, y);
  c.lineTo(p.l + p.w, 36);
  c.lineTo(p.l, 36);
  c.fillStyle = '#c5cad2';
  c.fill();
  strokeCurve(c, r.reservedMost, p, 0, full, y, LINE, [4, 2]);
  c.strokeStyle = INK;
  c.lineWidth = 1.5;
  c.strokeRect(p.l + state.x0 / full * p.w, 3, Math.max(3,
    (state.x1 - state.x0) / full * p.w), 35);
}

/* A grid of cells as a picture, drawn in vertical strips because the axis may
 * be one of time. */
function drawCells(c, r, p, cells, ink) {
  if (!cells.length) return;
  const key = ink + cells.length;
  r.pictures = r.pictures || {};
  if (!r.pictures[key]) r.pictures[key] = pictureOf(cells, ink);
  c.imageSmoothingEnabled = false;
  const top = p.y(r.bytes), high = p.y(0) - top;
  if (!isByTime()) {
    c.drawImage(r.pictures[key], p.x(0), top, p.x(events) - p.x(0), high);
    return;
  }
  for (let k = 0; k < data.wide; k++) {
    const l = p.x(timeAt(k * events / data.wide));
    const w = p.x(timeAt((k + 1) * events / data.wide)) - l;
    if (w > 0 && l < p.l + p.w && l + w > p.l)
      c.drawImage(r.pictures[key], k, 0, 1, data.high, l, top, w, high);
  }
}

function pictureOf(cells, ink) {
  const picture = document.createElement('canvas');
  const rgb = parseInt(ink.slice(1), 16);
  picture.width = data.wide;
  picture.height = data.high;
  const image = new ImageData(data.wide, data.high);
  for (let i = 0; i < cells.length; i++) {
    const row = data.high - 1 - Math.floor(i / data.wide);
    const to = 4 * (row * data.wide + i % data.wide);
    image.data.set([rgb >> 16, rgb >> 8 & 255, rgb & 255, cells[i]], to);
  }
  picture.getContext('2d').putImageData(image, 0, 0);
  return picture;
}

function drawRanges(c, r, p) {
  c.fillStyle = FREE;
  for (let i = 0; i < r.rangeFrom.length; i++) {
    const l = p.x(xOf(r.rangeFrom[i])), w = p.x(xOf(r.rangeTo[i])) - l;
    const top = p.y((r.rangeY[i] + r.rangeSize[i]) * r.unit);
    if (l < p.l + p.w && l + w > p.l)
      c.fillRect(l, top, w, p.y(r.rangeY[i] * r.unit) - top);
  }
  drawCells(c, r, p, r.rangeCells, FREE);
}

const isFaint = (r, i) => !r.passes[i] || (r.marked && !r.marked[i]);

function drawBox(c, r, i, l, t, w, h) {
  c.globalAlpha = !r.passes[i] ? 0.07 : isFaint(r, i) ? 0.22 : 1;
  c.fillRect(l, t, w, h);
  if (w > 4 && h > 3) {
    c.strokeStyle = '#fffa';
    c.lineWidth = 0.7;
    c.strokeRect(l + 0.3, t + 0.3, w - 0.6, h - 0.6);
  }
}

function drawBlocks(c, r, p) {
  const inks = palette();
  let ink = -1;
  for (const i of r.order) {
    const l = p.x(r.x0[i]), w = p.x(r.x1[i]) - l;
    const t = p.y(bottom(r, i) + sizeOf(r, i)), h = p.y(bottom(r, i)) - t;
    if (l > p.l + p.w || l + w < p.l || t > p.t + p.h || t + h < p.t) continue;
    if (ink != r.ink[i]) c.fillStyle = inks[ink = r.ink[i]];
    drawBox(c, r, i, l, t, w, h);
  }
  c.globalAlpha = 1;
}

/* The blocks that are stacked one by one: those that are seen at this zoom. */
function stackable(r, p) {
  const least = (state.y1 - state.y0) / p.h * 0.7;
  const wide = (state.x1 - state.x0) / p.w * 0.7, list = [];
  for (let i = 0; i < r.from.length; i++)
    if (r.passes[i] && r.x1[i] > state.x0 && r.x0[i] < state.x1 &&
        sizeOf(r, i) >= least && r.x1[i] - r.x0[i] >= wide) list.push(i);
  return list;
}

/* Calls use(block, bottom, x) for each stacked block at each pixel, and
 * rest(from, to, x) for what lies above: blocks that are not seen one by one. */
function eachStack(r, p, use, rest) {
  const list = stackable(r, p);
  let live = [], next = 0;
  for (let px = 0; px < p.w; px++) {
    const event = eventAt(p.atX(p.l + px + 0.5));
    let y = 0, kept = 0;
    while (next < list.length && r.from[list[next]] <= event)
      live.push(list[next++]);
    for (const i of live)
      if (r.to[i] > event) {
        live[kept++] = i;
        use(i, y, px);
        y += sizeOf(r, i);
      }
    live.length = kept;
    rest(y, Math.max(y, r.allocated[columnAt(event)]), px);
  }
}

function drawStacks(c, r, p) {
  const inks = palette(), boxes = new Map(), band = [];
  const flush = (i, box) => {
    const t = p.y(box.y + sizeOf(r, i));
    c.fillStyle = inks[r.ink[i]];
    drawBox(c, r, i, p.l + box.from, t, box.to - box.from, p.y(box.y) - t);
  };
  eachStack(r, p, (i, y, px) => {
    const box = boxes.get(i);
    if (box && box.y == y && box.to == px) {
      box.to = px + 1;
      return;
    }
    if (box) flush(i, box);
    boxes.set(i, {y: y, from: px, to: px + 1});
  }, (from, to, px) => band.push([from, to, px]));
  boxes.forEach((box, i) => flush(i, box));
  c.globalAlpha = 1;
  c.fillStyle = '#8d95a199';
  for (const [from, to, px] of band)
    c.fillRect(p.l + px, p.y(to), 1, p.y(from) - p.y(to));
  strokeCurve(c, r.allocatedMost, p, state.x0, state.x1, p.y, INK, []);
  strokeCurve(c, r.reservedMost, p, state.x0, state.x1, p.y, LINE, [5, 3]);
}

/* Draws all but the marks, which change with the pointer. */
function drawBase(r) {
  const w = r.canvas.clientWidth, h = r.canvas.clientHeight;
  if (!w) return;
  r.base = r.base || document.createElement('canvas');
  const c = sharp(r.base, w, h), p = r.p = frameOf(r);
  c.fillStyle = '#fff';
  c.fillRect(0, 0, w, h);
  drawOverview(c, r, p);
  c.save();
  c.beginPath();
  c.rect(p.l, p.t, p.w, p.h);
  c.clip();
  if (isStacked()) drawStacks(c, r, p);
  else {
    drawRanges(c, r, p);
    drawCells(c, r, p, r.cells, REST);
    drawBlocks(c, r, p);
  }
  c.restore();
  drawAxes(c, p);
  r.canvas.dataset.plot = [p.l, p.t, p.w, p.h].join(' ');
  r.canvas.dataset.window = [state.x0, state.x1, state.y0, state.y1].join(' ');
  drawMarks(r);
}

function drawLine(c, p, event, ink, dashes) {
  const x = p.x(xOf(event + 0.5));
  if (x < p.l || x > p.l + p.w) return;
  c.beginPath();
  c.setLineDash(dashes);
  c.strokeStyle = ink;
  c.lineWidth = 1.3;
  c.moveTo(x, p.t);
  c.lineTo(x, p.t + p.h);
  c.stroke();
  c.setLineDash([]);
}

/* Where a block lies on the map; in the stacked map, at the moment. */
function boxOf(r, i) {
  const p = r.p;
  let y = bottom(r, i), x0 = r.x0[i], x1 = r.x1[i];
  if (isStacked()) {
    const event = isLive(r, i, state.moment) ? state.moment : r.from[i];
    y = 0;
    for (const k of stackable(r, p))
      if (k < i && isLive(r, k, event)) y += sizeOf(r, k);
    x0 = xOf(event) - (state.x1 - state.x0) * 4 / p.w;
    x1 = xOf(event) + (state.x1 - state.x0) * 4 / p.w;
  }
  return [p.x(x0), p.y(y + sizeOf(r, i)), Math.max(3, p.x(x1) - p.x(x0)),
    Math.max(3, p.y(y) - p.y(y + sizeOf(r, i)))];
}

function drawMarks(r) {
  const w = r.canvas.clientWidth, h = r.canvas.clientHeight, p = r.p;
  const c = sharp(r.canvas, w, h);
  if (!r.base || !p) return;
  c.drawImage(r.base, 0, 0, w, h);
  c.save();
  c.beginPath();
  c.rect(p.l, p.t, p.w, p.h);
  c.clip();
  drawLine(c, p, state.moment, INK, []);
  if (state.cursor !== null) drawLine(c, p, state.cursor, '#0072b2', [3, 3]);
  for (const event of r.oom) drawLine(c, p, event, LINE, [1, 3]);
  if (data.recordedOom !== null) drawLine(c, p, data.recordedOom, LINE, [7, 3]);
  if (state.picked && state.picked.run == r) {
    c.strokeStyle = INK;
    c.lineWidth = 2.5;
    c.strokeRect(...boxOf(r, state.picked.block));
  }
  c.restore();
}

let isAsked = false;
function draw() {
  if (isAsked) return;
  isAsked = true;
  requestAnimationFrame(() => {
    isAsked = false;
    runs.forEach(drawBase);
    sayLevel();
  });
}

/* -- finding blocks --------------------------------------------------------- */

function blockAt(r, px, py) {
  const p = r.p, x = p.atX(px), y = p.atY(py);
  return isStacked() ? stackedAt(r, eventAt(x), y) : mappedAt(r, x, y);
}

/* The smallest block within two pixels of the place. */
function mappedAt(r, x, y) {
  const dx = (state.x1 - state.x0) / r.p.w * 2;
  const dy = (state.y1 - state.y0) / r.p.h * 2;
  let best = -1, near = Infinity;
  for (let i = 0; i < r.from.length; i++) {
    const low = bottom(r, i), size = sizeOf(r, i);
    if (!r.passes[i] || r.x0[i] > x + dx || r.x1[i] < x - dx || low > y + dy ||
        low + size < y - dy) continue;
    const away = Math.max(r.x0[i] - x, x - r.x1[i], 0) / dx +
      Math.max(low - y, y - low - size, 0) / dy;
    if (away < near || (away == near && size < sizeOf(r, best))) {
      best = i;
      near = away;
    }
  }
  return best;
}

function stackedAt(r, event, y) {
  for (const i of stackable(r, r.p)) {
    if (!isLive(r, i, event)) continue;
    if (y >= 0 && y < sizeOf(r, i)) return i;
    y -= sizeOf(r, i);
  }
  return -1;
}

/* What the map shows where no block is: a cell of others, or nothing. */
function placeAt(r, px, py) {
  const x = r.p.atX(px), y = r.p.atY(py);
  if (isStacked())
    return y >= 0 && y < r.allocated[columnAt(eventAt(x))] ? 'Blocks that are '
      + 'too small for this zoom, or were added up' : '';
  if (!r.cells.length || y < 0 || y >= r.bytes) return '';
  const column = Math.floor(eventAt(x) * data.wide / events);
  const row = Math.floor(y / r.bytes * data.high);
  const share = r.cells[row * data.wide + column] / 2.55;
  return share ? 'Blocks that were added up: ' + share.toFixed(0) +
    ' % of this cell of ' + cellWords(r) : '';
}

const cellWords = (r) => plural(Math.ceil(events / data.wide), 'event') +
  ' by ' + bytes(r.bytes / data.high);

/* -- holders ---------------------------------------------------------------- */

const groupOf = (r, kind) => hasStacks ? r.node[kind] : r.requested[kind];
const groupName = (key) => key == 'rest' ? 'blocks that were added up' :
  hasStacks ? nameOf(key) : 'blocks of ' + bytes(key);

/* What is live after the event, by stack, or by size without stacks. */
function holdersAt(r, event) {
  const groups = new Map();
  const add = (key, bytes, blocks) => {
    const g = groups.get(key) || {key: key, bytes: 0, blocks: 0};
    g.bytes += bytes;
    g.blocks += blocks;
    groups.set(key, g);
  };
  for (let i = 0; i < r.from.length; i++)
    if (r.passes[i] && isLive(r, i, event))
      add(groupOf(r, r.kind[i]), askedBytes(r, i), 1);
  if (r.moment.length && !isFiltered()) {
    const m = find(r.moment, event), end = m + 1 < r.moment.length ?
      r.momentFirst[m + 1] : r.sumNode.length;
    for (let k = r.momentFirst[m]; k < end; k++)
      add(hasStacks ? r.sumNode[k] : 'rest', r.sumRequested[k], r.sumBlocks[k]);
  }
  return [...groups.values()].sort((a, b) => b.bytes - a.bytes);
}

const shownRun = () => state.picked ? state.picked.run : runs[0];

function addRow(body, bytesHeld, share, blocks, words, key) {
  const row = body.insertRow();
  for (const text of [bytes(bytesHeld), (100 * share).toFixed(1) + ' %',
    count(blocks)]) row.insertCell().textContent = text;
  row.cells[0].dataset.v = bytesHeld;
  const cell = row.insertCell();
  cell.className = 'l';
  if (key === undefined) {
    cell.textContent = words;
    return;
  }
  const button = document.createElement('button');
  button.textContent = words;
  button.title = hasStacks && key != 'rest' ?
    frames(key).map(frame).join('\n') : '';
  button.dataset.key = key;
  button.setAttribute('aria-pressed', state.held === key);
  row.className = state.held === key ? 'on' : '';
  button.onclick = () => mark(state.held === key ? null : key);
  cell.append(button);
}

function writeHolders() {
  const r = shownRun(), list = holdersAt(r, state.moment);
  const body = $('.v-holders tbody'), sum = list.reduce((a, g) =>
    a + g.bytes, 0), all = list.reduce((a, g) => a + g.blocks, 0);
  const rest = list.slice(ROWS);
  body.textContent = '';
  for (const g of list.slice(0, ROWS))
    addRow(body, g.bytes, g.bytes / sum, g.blocks, groupName(g.key), g.key);
  if (rest.length)
    addRow(body, rest.reduce((a, g) => a + g.bytes, 0), rest.reduce((a, g) =>
      a + g.bytes, 0) / sum, rest.reduce((a, g) => a + g.blocks, 0),
    count(rest.length) + ' more');
  $('.v-moment').textContent = (state.moment == data.peak ?
    'Who holds memory at the peak, ' : 'Who holds memory at ') +
    at(state.moment) + ': ' + plural(all, 'block') + (all == 1 ? ' holds ' :
    ' hold ') + bytes(sum) + (runs.length > 1 ? ', under ' + r.policy : '');
  $('.v-filter').textContent = restWords(r);
  writeFlame(list);
}

function restWords(r) {
  if (!r.moment.length) return isFiltered() ? 'Only the blocks that pass the ' +
    'filter.' : '';
  const m = r.moment[find(r.moment, state.moment)];
  return isFiltered() ? 'Only blocks that pass the filter and are written one '
    + 'by one; no filter knows the ' + plural(r.rest, 'block') + ' that were '
    + 'added up.' : m == state.moment ? '' : 'The blocks that were added up ' +
    'are those of ' + at(m) + ', the last moment before that the page has.';
}

/* Highlights the blocks of a group; null: none. */
function mark(key) {
  state.held = key;
  state.frame = 0;
  for (const r of runs)
    r.marked = key === null ? null : Uint8Array.from(r.kind, (kind) =>
      groupOf(r, kind) === key);
  writeHolders();
  draw();
}

/* -- flame graph ------------------------------------------------------------ */

/* The bytes of each node with all below, and the children of each. */
function treeOf(list) {
  const total = new Map(), children = new Map();
  for (const g of list)
    for (let n = g.key; n > 0; n = n == LEFT_OUT ? 0 : parentOf(n)) {
      if (!total.has(n)) {
        const parent = n == LEFT_OUT ? 0 : parentOf(n);
        if (!children.has(parent)) children.set(parent, []);
        children.get(parent).push(n);
      }
      total.set(n, (total.get(n) || 0) + g.bytes);
    }
  children.forEach((c) => c.sort((a, b) => total.get(b) - total.get(a)));
  return {total: total, children: children};
}

function addFrame(box, n, depth, left, width, words) {
  const button = document.createElement('button');
  button.style.cssText = 'left:' + left + '%;width:' + width + '%;top:' +
    depth * 20 + 'px';
  button.className = (depth % 2 ? 'odd' : '') + (n && n == state.frame ? ' on' : '');
  button.textContent = button.title = words;
  button.onclick = () => pickFrame(n);
  box.append(button);
}

function writeFlame(list) {
  const box = $('.v-flame'), sum = list.reduce((a, g) => a + g.bytes, 0);
  const tree = treeOf(list), path = frames(state.frame).reverse();
  let deepest = -1, narrow = 0;
  box.textContent = '';
  box.hidden = $('.v-flame-title').hidden = $('.v-frame').hidden = !hasStacks;
  if (!hasStacks) return;
  const whole = tree.total.get(state.frame) || sum;
  const put = (n, depth, left) => {
    const bytesHeld = n ? tree.total.get(n) || 0 : sum;
    const width = path.includes(n) || !n ? 100 : bytesHeld / whole * 100;
    if (width < 0.25) { narrow++; return; }
    deepest = Math.max(deepest, depth);
    addFrame(box, n, depth, left, width, (n ? frame(n) : 'all') + ', ' +
      bytes(bytesHeld) + ', ' + (100 * bytesHeld / sum).toFixed(1) + ' %');
    for (const child of below(tree, n, path)) {
      put(child, depth + 1, left);
      left += (tree.total.get(child) || 0) / whole * 100;
    }
  };
  put(0, 0, 0);
  box.style.height = (deepest + 1) * 20 + 'px';
  $('.v-frame').textContent = 'The width of a frame is the bytes that it and ' +
    'the frames below it hold. A click on a frame widens it and highlights ' +
    'its blocks.' + (narrow ? ' ' + plural(narrow, 'frame') +
    (narrow == 1 ? ' is' : ' are') + ' too narrow to be drawn.' : '');
}

/* The children that are drawn: on the way to the widened frame only that. */
function below(tree, n, path) {
  const on = n == 0 ? path[0] : path[path.indexOf(n) + 1];
  const isOnPath = n == 0 || path.includes(n);
  return isOnPath && on ? [on] : tree.children.get(n) || [];
}

function pickFrame(n) {
  state.frame = n == state.frame ? 0 : n;
  state.held = null;
  const under = new Map();
  const isUnder = (leaf) => {
    if (!under.has(leaf)) under.set(leaf, frames(leaf).includes(n));
    return under.get(leaf);
  };
  for (const r of runs)
    r.marked = state.frame ? Uint8Array.from(r.kind, (kind) =>
      isUnder(r.node[kind])) : null;
  writeHolders();
  draw();
}

/* -- moving ----------------------------------------------------------------- */

function setWindow(x0, x1, y0, y1) {
  const fit = (low, high, max, least) => {
    const span = Math.min(max, Math.max(least, high - low));
    low = Math.min(Math.max(0, (low + high - span) / 2), max - span);
    return [low, low + span];
  };
  [state.x0, state.x1] = fit(x0, x1, maxX(), Math.min(maxX(), isByTime() ?
    maxX() * 8 / Math.max(8, events) : 8));
  [state.y0, state.y1] = fit(y0, y1, maxY(), Math.min(maxY(), 4096));
  draw();
}

const showAll = () => setWindow(0, maxX(), 0, maxY());

/* Zooms by a factor around a place in [0, 1] of the window. */
function zoom(by, u, v, onlyX) {
  const w = state.x1 - state.x0, h = state.y1 - state.y0;
  const x = state.x0 + u * w, y = state.y0 + v * h, byY = onlyX ? 1 : by;
  setWindow(x - u * w * by, x + (1 - u) * w * by, y - v * h * byY,
    y + (1 - v) * h * byY);
}

function move(u, v) {
  const dx = u * (state.x1 - state.x0), dy = v * (state.y1 - state.y0);
  const clamp = (d, low, high, max) => Math.max(-low, Math.min(d, max - high));
  const x = clamp(dx, state.x0, state.x1, maxX());
  const y = clamp(dy, state.y0, state.y1, maxY());
  setWindow(state.x0 + x, state.x1 + x, state.y0 + y, state.y1 + y);
}

/* Says what the data hold no finer: cells of more than 12 pixels, or single
 * events. */
function sayLevel() {
  const cell = maxX() / data.wide / (state.x1 - state.x0) *
    (runs[0].p ? runs[0].p.w : 0);
  const rest = runs.filter((r) => r.rest);
  $('.v-level').textContent = rest.length && cell > 12 && !isStacked() ?
    'This is finer than the data: a cell of the blocks that were added up has '
    + rest.map(cellWords).join(' and ') + '. ' : state.x1 - state.x0 <= 8 &&
    !isByTime() && events > 8 ? 'This is the finest level: single events.' : '';
}

function goTo(event, words) {
  const half = Math.max(30, events / 40);
  state.moment = event;
  setWindow(xOf(Math.max(0, event - half)), xOf(Math.min(events,
    event + half)), 0, maxY());
  writeHolders();
  sayCursor(event);
  $('.v-block').textContent = words + ' is ' + at(event) + '. ' +
    $('.v-moment').textContent + '. Most is held by ' +
    ($('.v-holders button') || {textContent: 'nothing'}).textContent + '.';
  $('.v-stack').hidden = true;
}

/* -- selection -------------------------------------------------------------- */

function pick(r, i) {
  state.picked = i < 0 ? null : {run: r, block: i};
  $('.v-block').textContent = i < 0 ? 'No block is selected.' : describe(r, i);
  $('.v-stack').hidden = i < 0 || !hasStacks;
  if (i >= 0)
    $('.v-stack').textContent = frames(nodeAt(r, i)).map(frame).join('\n');
  runs.forEach(drawMarks);
}

/* Selects a block without the pointer, and shows it. */
function pickAndShow(r, i) {
  if (i < 0) return;
  if (!isLive(r, i, state.moment)) state.moment = r.from[i];
  const y = isStacked() ? state.y0 : bottom(r, i);
  const isSeen = r.x1[i] >= state.x0 && r.x0[i] <= state.x1 &&
    y >= state.y0 && y <= state.y1;
  if (!isSeen)
    move((r.x0[i] - (state.x0 + state.x1) / 2) / (state.x1 - state.x0),
      (y - (state.y0 + state.y1) / 2) / (state.y1 - state.y0));
  pick(r, i);
  writeHolders();
}

/* The next block that passes the filters: before (-1) or after in the order of
 * the requests, or below or above at the moment. */
function neighbour(r, i, along, up) {
  if (along) {
    do i += along; while (i >= 0 && i < r.from.length && !r.passes[i]);
    return i < r.from.length ? i : -1;
  }
  let best = -1, near = Infinity;
  for (let k = 0; k < r.from.length; k++) {
    const away = isStacked() ? (k - i) * up : (bottom(r, k) - bottom(r, i)) *
      up;
    if (k != i && r.passes[k] && isLive(r, k, state.moment) && away > 0 &&
        away < near) [best, near] = [k, away];
  }
  return best;
}

function step(r, along, up) {
  const i = state.picked && state.picked.run == r ? state.picked.block :
    middleBlock(r);
  if (!state.picked || state.picked.run != r) pickAndShow(r, i);
  else pickAndShow(r, neighbour(r, i, along, up));
}

/* The largest block that is live in the middle of the map. */
function middleBlock(r) {
  const event = eventAt((state.x0 + state.x1) / 2);
  const inMiddle = blockAt(r, r.p.l + r.p.w / 2, r.p.t + r.p.h / 2);
  let best = inMiddle;
  for (let i = 0; inMiddle < 0 && i < r.from.length; i++)
    if (r.passes[i] && isLive(r, i, event) &&
        (best < 0 || sizeOf(r, i) > sizeOf(r, best))) best = i;
  return best;
}

function sayCursor(event) {
  const c = columnAt(event);
  $('.v-cursor').textContent = event === null ? '' : 'At ' + at(event) + ': ' +
    runs.map((r) => (runs.length > 1 ? r.policy + ' ' : '') + 'reserved ' +
      bytes(r.reservedMost[c]) + ', allocated ' + bytes(r.allocatedMost[c]) +
      ', requested ' + bytes(r.requestedMost[c])).join('; ') +
    (data.columns < events ? ' (the most of ' + plural(Math.ceil(events /
      data.columns), 'event') + ')' : '') + '.';
}

/* -- input ------------------------------------------------------------------ */

function tell(r, px, py) {
  const inside = px >= r.p.l && px <= r.p.l + r.p.w && py >= r.p.t &&
    py <= r.p.t + r.p.h;
  const i = inside ? blockAt(r, px, py) : -1;
  const words = !inside ? '' : i < 0 ? placeAt(r, px, py) : describe(r, i) +
    '\n' + frames(nodeAt(r, i)).slice(0, 6).map(frame).join('\n');
  state.cursor = inside ? eventAt(r.p.atX(px)) : null;
  if (inside) sayCursor(state.cursor);
  r.tip.textContent = words.trim();
  r.tip.hidden = !r.tip.textContent;
  r.tip.style.left = Math.max(0, Math.min(px + 14, r.canvas.clientWidth -
    r.tip.offsetWidth)) + 'px';
  r.tip.style.top = py + r.canvas.offsetTop + 16 + 'px';
  runs.forEach(drawMarks);
}

function click(r, px, py) {
  if (py < r.p.t) { /* the overview */
    const x = (px - r.p.l) / r.p.w * maxX(), half = (state.x1 - state.x0) / 2;
    setWindow(x - half, x + half, state.y0, state.y1);
    return;
  }
  state.moment = eventAt(r.p.atX(px));
  pick(r, blockAt(r, px, py));
  sayCursor(state.moment);
  writeHolders();
}

const placeOf = (r, e) => {
  const box = r.canvas.getBoundingClientRect();
  return [e.clientX - box.left, e.clientY - box.top];
};

function onWheel(r, e) {
  const isAll = state.x0 <= 0 && state.x1 >= maxX() && state.y0 <= 0 &&
    state.y1 >= maxY();
  const amount = e.deltaY || e.deltaX; /* with Shift it may be sideways */
  if (isAll && amount > 0) return; /* the page scrolls */
  e.preventDefault();
  const [px, py] = placeOf(r, e);
  zoom(Math.exp(Math.max(-1, Math.min(1, amount / 300))),
    (px - r.p.l) / r.p.w, (r.p.t + r.p.h - py) / r.p.h, e.shiftKey);
}

/* One pointer drags, two pinch. */
function addPointers(r) {
  const down = new Map(), canvas = r.canvas;
  let moved = 0;
  const gap = () => {
    const [a, b] = [...down.values()];
    return Math.hypot(a[0] - b[0], a[1] - b[1]) || 1;
  };
  canvas.addEventListener('pointerdown', (e) => {
    if (!down.size) moved = 0;
    down.set(e.pointerId, placeOf(r, e));
    canvas.setPointerCapture(e.pointerId);
  });
  canvas.addEventListener('pointermove', (e) => {
    const last = down.get(e.pointerId), now = placeOf(r, e);
    if (!last) { tell(r, ...now); return; }
    const before = down.size == 2 ? gap() : 0;
    moved += Math.hypot(now[0] - last[0], now[1] - last[1]);
    down.set(e.pointerId, now);
    if (before)
      zoom(before / gap(), (now[0] - r.p.l) / r.p.w, (r.p.t + r.p.h - now[1]) /
        r.p.h, false);
    else if (moved > 4)
      move((last[0] - now[0]) / r.p.w, (now[1] - last[1]) / r.p.h);
  });
  canvas.addEventListener('pointerup', (e) => {
    if (down.size == 1 && moved <= 4) click(r, ...placeOf(r, e));
    down.delete(e.pointerId);
  });
  canvas.addEventListener('pointercancel', (e) => down.delete(e.pointerId));
  canvas.addEventListener('pointerleave', () => {
    r.tip.hidden = true;
    state.cursor = null;
    runs.forEach(drawMarks);
  });
}

const ARROWS = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1],
  ArrowDown: [0, -1]};

function onKey(r, e) {
  const arrow = ARROWS[e.key];
  const keys = {
    '+': () => zoom(0.7, 0.5, 0.5, false), '=': () => zoom(0.7, 0.5, 0.5, false),
    '-': () => zoom(1 / 0.7, 0.5, 0.5, false), Home: showAll,
    Enter: () => pickAndShow(r, middleBlock(r)),
    Escape: () => { pick(r, -1); mark(null); },
  };
  if (e.ctrlKey || e.metaKey || e.altKey || !(arrow || keys[e.key])) return;
  e.preventDefault();
  if (!arrow) keys[e.key]();
  else if (e.shiftKey) step(r, ...arrow);
  else move(arrow[0] * 0.15, arrow[1] * 0.15);
}

function onSet(key, value) {
  state[key] = value;
  if (key == 'axis') {
    runs.forEach(place);
    state.x0 = state.y0 = 0;
    state.x1 = maxX();
    state.y1 = maxY();
  }
  if (key == 'mode') { state.y0 = 0; state.y1 = maxY(); }
  if (key == 'colour') colour();
  if (!['axis', 'mode', 'colour'].includes(key)) { filter(); writeHolders(); }
  draw();
}

/* -- the page --------------------------------------------------------------- */

function addRun(r) {
  const figure = document.createElement('figure');
  const caption = document.createElement('figcaption');
  r.canvas = document.createElement('canvas');
  r.tip = document.createElement('div');
  r.tip.className = 'v-tip';
  r.tip.hidden = true;
  caption.textContent = r.policy + (r.bound ? ', ' + r.bound : '') +
    ': peak reserved ' + bytes(r.peakReserved) + (r.ooms ? ', ' +
    plural(r.ooms, 'OOM') : '');
  r.canvas.tabIndex = 0;
  r.canvas.setAttribute('role', 'application');
  r.canvas.setAttribute('aria-label', 'Map of the memory of ' + data.trace +
    ' under ' + caption.textContent + '. ' + $('.v-help').textContent);
  figure.append(caption, r.canvas, r.tip);
  $('.v-runs').append(figure);
  r.canvas.addEventListener('wheel', (e) => onWheel(r, e), {passive: false});
  r.canvas.addEventListener('keydown', (e) => onKey(r, e));
  addPointers(r);
}

function addOptions(key, names) {
  const select = $('[data-set=' + key + ']');
  names.forEach((name, i) => select.add(new Option(name, i)));
  select.closest('label').hidden = names.length < 2;
}

function addTools() {
  const oom = data.recordedOom !== null ? data.recordedOom :
    Math.min(...runs.map((r) => r.oom.length ? r.oom[0] : Infinity));
  addOptions('stream', data.streams.map((s, i) => streamName(i)));
  addOptions('pool', data.pools);
  $('[data-set=axis]').closest('label').hidden = !isTimed;
  $('[data-set=stack]').closest('label').hidden = !hasStacks;
  $('option[value=site]').hidden = !hasStacks;
  $('[data-set=colour]').value = state.colour;
  $('[data-go=oom]').hidden = !(oom < Infinity);
  $('[data-go=peak]').onclick = () => goTo(data.peak, 'The peak');
  $('[data-go=oom]').onclick = () => goTo(oom, 'The failed request');
  $('[data-go=all]').onclick = showAll;
  root.querySelectorAll('[data-set]').forEach((input) => {
    input.addEventListener('input', () => {
      const isSize = input.dataset.set == 'least' || input.dataset.set == 'most';
      const isWrong = isSize && input.value && isNaN(parseSize(input.value));
      input.setCustomValidity(isWrong ? 'a size, such as 1 MiB' : '');
      if (!isWrong) onSet(input.dataset.set, input.value);
    });
  });
}

/* What was added up, and what has no room. */
function sayRest() {
  const said = runs.map((r) => (runs.length > 1 ? r.policy + ': ' : '') +
    (r.rest ? plural(r.written, 'block') + ' of ' + count(r.blocks) +
    ' are written one by one: ' + (r.hasPeak ? 'those at the peak, and ' : '')
    + (r.least === null ? 'no others' : 'those of at least ' +
    bytes(r.least) + ' times events') + '. The ' + plural(r.rest, 'other') +
    (r.rest == 1 ? ' is' : ' are') + ' added up in cells of ' + cellWords(r) +
    ', and by stack at ' + plural(r.moment.length, 'moment') :
    r.blocks == 1 ? 'The one block is written' : 'All ' + count(r.blocks) +
    ' blocks are written one by one') + (r.rangesWritten < r.ranges ? '; ' +
    count(r.ranges - r.rangesWritten) + ' small reserved ranges are cells' :
    '') + '.');
  if (data.stacksLeftOut)
    said.push(plural(data.stacksLeftOut, 'stack') + ' had no room.');
  $('.v-said').textContent = data.trace + ', ' + data.device + ', ' +
    plural(events, 'event') + '. ' + said.join(' ') + ' Bytes of holders are ' +
    'requested bytes; a block that a stream still uses counts.';
}

runs.forEach(addRun);
runs.forEach(place);
addTools();
colour();
sayRest();
writeHolders();
sayCursor(state.moment);
new ResizeObserver(draw).observe($('.v-runs'));
runs.forEach(drawBase);
sayLevel();
})();
