/* view_map.js - the data of the interactive view (view_parts.h says what they are), the words for
 * them, and the map of each run on its canvas. What was not written one by one is drawn as the
 * cells that the data hold. view.js follows in the same function. */
const script = document.currentScript.previousElementSibling;
const root = script.previousElementSibling;
const data = JSON.parse(script.textContent);
const $ = (name) => root.querySelector(name);

const TYPES = {u8: Uint8Array, u32: Uint32Array, f64: Float64Array};
const CIVIDIS = ['#fdea45', '#dccc5c', '#bcaf6f', '#9b9575', '#7c7b78', '#5e6472', '#414d6b',
  '#21385f', '#00224e'];
const SITES = ['#08306b', '#fd8d3c', '#238b45', '#fee391', '#8c2d04', '#41b6c4', '#6a51a3',
  '#d9b3e0', '#a9afb8'];
const OTHERS = 8; /* the colour of all further sites */
const FREE = '#e3e5e9', REST = '#5b6270', BAND = '#bdc2ca', INK = '#16181d', LINE = '#b84a00';
const LEFT_OUT = 1; /* the node of the stacks that have no room */
const ROWS = 20;    /* of the table of holders */

/* -- data ------------------------------------------------------------------------------------ */

function numbers(column) {
  const type = Object.keys(column)[0];
  return new TYPES[type](Uint8Array.from(atob(column[type]), (c) => c.charCodeAt(0)).buffer);
}

const nodes = numbers(data.nodes), times = numbers(data.times), events = data.events;
const hasStacks = nodes.length > 12, isTimed = times.length > 0;

function openRun(run) {
  for (const key in run)
    if (run[key] && typeof run[key] == 'object') run[key] = numbers(run[key]);
  const n = run.from.length;
  return Object.assign(run, {
    x0: new Float64Array(n), x1: new Float64Array(n), ink: new Uint8Array(n),
    passes: new Uint8Array(n).fill(1), marked: null /* the highlighted blocks */,
    rest: run.blocks - run.written, pictures: {},
  });
}

const runs = data.runs.map(openRun);
const tallest = Math.max(...runs.map((r) => r.bytes));
const highest = Math.max(...runs.map((r) => r.reservedMost.reduce((a, b) => Math.max(a, b), 1)));
const sizeOf = (r, i) => r.size[r.kind[i]];
const nodeAt = (r, i) => r.node[r.kind[i]];
const bottom = (r, i) => r.y[i] * r.unit;
const isLive = (r, i, event) => r.from[i] <= event && event < r.to[i];
const asked = (r, i) => r.asked.length ? r.asked[i] : r.from[i];

/* The changes of settings; of several before one event, the last. */
const changes = data.changes.filter((x, i, all) => i + 1 == all.length ||
  all[i + 1].event > x.event);

/* The last index at which the ascending values are at most x. */
function find(values, x) {
  let low = 0, high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= x) low = middle + 1; else high = middle;
  }
  return Math.max(0, low - 1);
}

/* -- words ----------------------------------------------------------------------------------- */

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'];

function bytes(n) {
  let unit = 0;
  while (n >= 1024 && unit < 6) { n /= 1024; unit++; }
  return n.toFixed(unit == 0 || n >= 1000 ? 0 : n >= 100 ? 1 : n >= 10 ? 2 : 3) + ' ' + UNITS[unit];
}

const short = (size) => size.replace(/^[\d.]+/, parseFloat); /* "1.500 GiB": "1.5 GiB" */

function seconds(s) {
  const digits = (x) => x >= 100 ? x.toFixed(0) : x.toPrecision(3);
  return s == 0 ? '0 s' : s < 1e-3 ? digits(s * 1e6) + ' \u00b5s' : s < 1 ?
    digits(s * 1e3) + ' ms' : digits(s) + ' s';
}

const count = (n) => n.toLocaleString('en');
const plural = (n, word) => count(n) + ' ' + word + (n == 1 ? '' : 's');
const percent = (part) => (100 * part).toFixed(1) + ' %';

/* "1 MiB" in bytes; NaN if it is no size. */
function parseSize(text) {
  const found = /^\s*([\d.]+)\s*([kmgtpe]?)(i?b)?\s*$/i.exec(text);
  return found ? found[1] * 1024 ** ' kmgtpe'.indexOf(found[2].toLowerCase() || ' ') : NaN;
}

const parentOf = (n) => n == LEFT_OUT ? 0 : nodes[6 * n];
const siteOf = (n) => nodes[6 * n + 4] || n;
const innermost = (n) => nodes[6 * n + 5] || n;
const functionOf = (n) => data.strings[nodes[6 * n + 1]];
const fileOf = (n) => data.strings[nodes[6 * n + 2]];

const cut = (text) => text.length > 90 ? text.slice(0, 87) + '...' : text;

function frame(n) {
  if (n <= LEFT_OUT) return n ? 'stacks that have no room in this page' : 'without a stack';
  const file = fileOf(n);
  return functionOf(n) + (file && file != '??' ?
    ' (' + file.split('/').pop() + ':' + nodes[6 * n + 3] + ')' : '');
}

/* The frames of a stack, the innermost first. */
function frames(n) {
  const list = [];
  for (; n > 0; n = parentOf(n)) list.push(n);
  return list;
}

/* The program's own code that a stack is in, and what that called. */
const siteName = (n) => cut(frame(siteOf(n)));
const nameOf = (n) => siteName(n) + (siteOf(n) != innermost(n) ? ', in ' + cut(frame(innermost(n))) :
  '');
const at = (event) => 'event ' + count(event) +
  (isTimed ? ' (' + seconds(timeAt(event)) + ')' : '');

function lifetime(r, i) {
  const from = asked(r, i), span = plural(r.to[i] - r.from[i], 'event') +
    (isTimed ? ', ' + seconds((r.died[i] - r.born[i]) * data.tick) : '');
  return (from < data.initial ? 'allocated before the recording' : 'allocated at ' + at(from)) +
    (from != r.from[i] ? ', moved here at ' + at(r.from[i]) : '') +
    (r.to[i] == events ? ', not freed' : (r.asked.length ? ', freed or moved away at ' :
      ', freed at ') + at(r.to[i])) + '; it lives ' + span;
}

function describe(r, i) {
  const k = r.kind[i];
  return 'Block of ' + bytes(r.requested[k]) +
    (r.size[k] != r.requested[k] ? ' (' + bytes(r.size[k]) + ' allocated)' : '') + ', stream ' +
    data.streams[r.stream[k]] + ', ' + data.pools[r.pool[k]] + ', ' + lifetime(r, i) + '.' +
    (hasStacks ? ' Held by ' + nameOf(r.node[k]) + '.' : '');
}

/* -- state and axes -------------------------------------------------------------------------- */

const state = {
  mode: 'address', axis: 'event', colour: hasStacks ? 'site' : 'lifetime',
  stream: '', pool: '', stack: '', least: '', most: '', /* the filters */
  x0: 0, x1: events, y0: 0, y1: tallest,                /* the window */
  moment: data.peak, cursor: null, picked: null, held: null, frame: 0,
};
const FILTERS = ['stream', 'pool', 'stack', 'least', 'most'];
const isStacked = () => state.mode == 'stacked';
const isByTime = () => state.axis == 'time';
const maxX = () => isByTime() ? times[data.columns] * data.tick : events;
const maxY = () => isStacked() ? highest * 1.04 : tallest;

const first = (c) => Math.floor(c * events / data.columns); /* the first event of a column */
const columnAt = (event) => Math.min(data.columns - 1, Math.max(0,
  Math.ceil((Math.floor(event) + 1) * data.columns / events) - 1));

/* The time of an event in seconds, as exact as the columns are. */
function timeAt(event) {
  const c = columnAt(event), from = first(c), to = Math.max(first(c + 1), from + 1);
  return (times[c] + (times[c + 1] - times[c]) * (event - from) / (to - from)) * data.tick;
}

const xOf = (event) => isByTime() ? timeAt(event) : event;

/* The event at a place on the axis. */
function eventAt(x) {
  if (isByTime()) {
    const tick = x / data.tick, c = Math.min(find(times, tick), data.columns - 1);
    const wide = times[c + 1] - times[c];
    x = first(c) + (wide ? (tick - times[c]) / wide : 0) * (first(c + 1) - first(c));
  }
  return Math.max(0, Math.min(events - 1, Math.floor(x)));
}

function place(r) {
  for (let i = 0; i < r.from.length; i++) {
    r.x0[i] = isByTime() ? r.born[i] * data.tick : r.from[i];
    r.x1[i] = isByTime() ? r.died[i] * data.tick : r.to[i];
  }
}

/* -- filters --------------------------------------------------------------------------------- */

const isFiltered = () => FILTERS.some((key) => state[key] !== '');
const hasText = (n) => frames(n).some((f) => f > LEFT_OUT && (functionOf(f).includes(state.stack) ||
  (fileOf(f) + ':' + nodes[6 * f + 3]).includes(state.stack)));

function filter() {
  const least = parseSize(state.least) || 0, most = state.most ? parseSize(state.most) : Infinity;
  const known = new Map();
  const has = (n) => known.has(n) ? known.get(n) : known.set(n, hasText(n)).get(n);
  for (const r of runs) {
    const passes = r.kind.length ? Array.from(r.size, (size, k) =>
      (state.stream === '' || r.stream[k] == state.stream) &&
      (state.pool === '' || r.pool[k] == state.pool) &&
      r.requested[k] >= least && r.requested[k] <= most && (!state.stack || has(r.node[k]))) : [];
    r.passes = Uint8Array.from(r.kind, (k) => passes[k]);
  }
}

/* -- colours --------------------------------------------------------------------------------- */

/* The names of the sites with the largest areas, at most as many as there are colours. */
function largestSites() {
  const areas = new Map();
  for (const r of runs)
    for (let i = 0; i < r.from.length; i++) {
      const site = siteNames[nodeAt(r, i)];
      areas.set(site, (areas.get(site) || 0) + sizeOf(r, i) * (r.to[i] - r.from[i]));
    }
  return [...areas].sort((a, b) => b[1] - a[1]).slice(0, OTHERS).map((entry) => entry[0]);
}

const siteNames = Array.from({length: nodes.length / 6}, (_, n) => siteName(n));
const sites = hasStacks ? largestSites() : [];
const palette = () => state.colour == 'site' ? SITES : CIVIDIS;
const levelOf = (r, i) => Math.log2(state.colour == 'size' ? sizeOf(r, i) :
  Math.max(1, r.to[i] - asked(r, i)));

function colour() {
  let low = Infinity, high = -Infinity;
  for (const r of runs)
    for (let i = 0; i < r.ink.length; i++) {
      low = Math.min(low, levelOf(r, i));
      high = Math.max(high, levelOf(r, i));
    }
  const rank = new Map(sites.map((site, i) => [site, i]));
  for (const r of runs) {
    for (let i = 0; i < r.ink.length; i++) {
      const known = rank.get(siteNames[nodeAt(r, i)]);
      r.ink[i] = state.colour == 'site' ? known === undefined ? OTHERS : known :
        Math.round((levelOf(r, i) - low) / (high - low || 1) * 8);
    }
    r.order = Uint32Array.from(r.ink.keys()).sort((a, b) => r.ink[a] - r.ink[b] || a - b);
  }
  writeKey(low, high);
}

function writeKey(low, high) {
  const amount = (p) => state.colour == 'size' ? bytes(2 ** p) : plural(Math.round(2 ** p),
    'event');
  const rows = state.colour == 'site' ?
    [...sites.map((site, i) => [SITES[i], site]), [SITES[OTHERS], 'other code']] :
    [0, 4, 8].map((i) => [CIVIDIS[i], amount(low + (high - low) * i / 8)]);
  if (isStacked()) rows.push([BAND, 'too small for this zoom, filtered out or added up']);
  else rows.push([FREE, 'reserved and free'], ['#fff', 'not reserved']);
  if (runs.some((r) => r.rest) && !isStacked()) rows.push([REST, 'added up in cells']);
  $('.v-key').textContent = '';
  for (const [ink, words] of rows) {
    const item = document.createElement('span'), box = document.createElement('i');
    box.style.background = ink;
    item.append(box, words);
    $('.v-key').append(item, ' ');
  }
  $('.v-key').append('\u2003Curves: allocated, and dashed reserved.' +
    (changes.length ? ' Thin lines: changes of settings.' : ''));
}

/* -- drawing --------------------------------------------------------------------------------- */

/* The place of the map on its canvas, and the scales. */
function scalesOf(r) {
  const w = r.canvas.clientWidth, p = {l: w < 500 ? 56 : 66, t: 46};
  p.w = w - p.l - 10;
  p.h = r.canvas.clientHeight - p.t - 26;
  p.x = (x) => p.l + (x - state.x0) / (state.x1 - state.x0) * p.w;
  p.y = (y) => p.t + p.h - (y - state.y0) / (state.y1 - state.y0) * p.h;
  p.atX = (px) => state.x0 + (px - p.l) / p.w * (state.x1 - state.x0);
  p.atY = (py) => state.y0 + (p.t + p.h - py) / p.h * (state.y1 - state.y0);
  return p;
}

function sharp(canvas, r) {
  const ratio = window.devicePixelRatio || 1, c = canvas.getContext('2d');
  canvas.width = Math.max(1, Math.round(r.canvas.clientWidth * ratio));
  canvas.height = Math.max(1, Math.round(r.canvas.clientHeight * ratio));
  c.setTransform(ratio, 0, 0, ratio, 0, 0);
  c.font = '12px system-ui, sans-serif';
  return c;
}

function clip(c, p) {
  c.save();
  c.beginPath();
  c.rect(p.l, p.t, p.w, p.h);
  c.clip();
}

/* 1, 2 or 5 times a power of ten, at least `raw`. */
function stepOf(raw) {
  const ten = 10 ** Math.floor(Math.log10(raw));
  return ten * [1, 2, 5, 10].find((m) => m * ten >= raw);
}

function drawAxes(c, p) {
  const stepY = 2 ** Math.ceil(Math.log2((state.y1 - state.y0) * 30 / p.h));
  const stepX = Math.max(stepOf((state.x1 - state.x0) * 90 / p.w), isByTime() ? 0 : 1);
  c.fillStyle = '#333';
  c.strokeStyle = '#8889';
  c.lineWidth = 1;
  c.strokeRect(p.l - 0.5, p.t - 0.5, p.w + 1, p.h + 1);
  c.textAlign = 'right';
  for (let y = Math.ceil(state.y0 / stepY) * stepY; y <= state.y1; y += stepY)
    c.fillText(short(bytes(y)), p.l - 5, p.y(y) + 4, p.l - 6);
  c.textAlign = 'center';
  for (let x = Math.ceil(state.x0 / stepX) * stepX; x <= state.x1; x += stepX)
    c.fillText(isByTime() ? seconds(x) : count(x),
      Math.min(Math.max(p.x(x), p.l + 12), p.l + p.w - 26), p.t + p.h + 16);
}

/* A curve of columns over the x range [from, to], as the most in each pixel. */
function traceCurve(c, values, p, from, to, y) {
  let last = 0;
  for (let px = 0; px <= p.w; px++) {
    const begin = columnAt(eventAt(from + (to - from) * px / p.w));
    const end = columnAt(eventAt(from + (to - from) * (px + 1) / p.w));
    let most = values[begin];
    for (let k = begin + 1; k < end; k++) most = Math.max(most, values[k]);
    if (px == 0) c.moveTo(p.l, y(most));
    else if (most != last) {
      c.lineTo(p.l + px, y(last));
      c.lineTo(p.l + px, y(most));
    }
    last = most;
  }
  c.lineTo(p.l + p.w, y(last));
}

function strokeCurve(c, values, p, from, to, y, ink, dashes) {
  c.beginPath();
  traceCurve(c, values, p, from, to, y);
  c.strokeStyle = ink;
  c.lineWidth = 1.4;
  c.setLineDash(dashes);
  c.stroke();
  c.setLineDash([]);
}

/* The whole run in small, above the map; a frame shows what part the map is. */
function drawOverview(c, r, p) {
  const y = (bytes) => 36 - bytes / highest * 30, full = maxX();
  c.beginPath();
  traceCurve(c, r.allocatedMost, p, 0, full, y);
  c.lineTo(p.l + p.w, 36);
  c.lineTo(p.l, 36);
  c.fillStyle = '#c5cad2';
  c.fill();
  strokeCurve(c, r.reservedMost, p, 0, full, y, LINE, [4, 2]);
  c.strokeStyle = INK;
  c.strokeRect(p.l + state.x0 / full * p.w, 3, Math.max(3, (state.x1 - state.x0) / full * p.w), 35);
}

/* Cells as a picture of one pixel each. */
function pictureOf(cells, ink) {
  const picture = document.createElement('canvas'), rgb = parseInt(ink.slice(1), 16);
  picture.width = data.wide;
  picture.height = data.high;
  const image = new ImageData(data.wide, data.high);
  for (let i = 0; i < cells.length; i++) {
    const row = data.high - 1 - Math.floor(i / data.wide);
    image.data.set([rgb >> 16, rgb >> 8 & 255, rgb & 255, cells[i]],
      4 * (row * data.wide + i % data.wide));
  }
  picture.getContext('2d').putImageData(image, 0, 0);
  return picture;
}

/* Draws cells; in vertical strips if the axis is one of time. */
function drawCells(c, r, p, key, ink) {
  if (!r[key].length) return;
  const picture = r.pictures[key] = r.pictures[key] || pictureOf(r[key], ink);
  const top = p.y(r.bytes), high = p.y(0) - top, strips = isByTime() ? data.wide : 1;
  c.imageSmoothingEnabled = false;
  for (let k = 0; k < strips; k++) {
    const l = p.x(xOf(k * events / strips)), w = p.x(xOf((k + 1) * events / strips)) - l;
    if (w > 0 && l < p.l + p.w && l + w > p.l)
      c.drawImage(picture, k, 0, data.wide / strips, data.high, l, top, w, high);
  }
}

function drawRanges(c, r, p) {
  c.fillStyle = FREE;
  for (let i = 0; i < r.rangeFrom.length; i++) {
    const l = p.x(xOf(r.rangeFrom[i])), w = p.x(xOf(r.rangeTo[i])) - l;
    const top = p.y((r.rangeY[i] + r.rangeSize[i]) * r.unit);
    if (l < p.l + p.w && l + w > p.l) c.fillRect(l, top, w, p.y(r.rangeY[i] * r.unit) - top);
  }
  drawCells(c, r, p, 'rangeCells', FREE);
}

function drawBox(c, r, i, l, t, w, h) {
  c.globalAlpha = !r.passes[i] ? 0.07 : r.marked && !r.marked[i] ? 0.22 : 1;
  c.fillRect(l, t, w, h);
  if (w <= 4 || h <= 3) return;
  c.strokeStyle = '#fffa';
  c.lineWidth = 0.7;
  c.strokeRect(l + 0.3, t + 0.3, w - 0.6, h - 0.6);
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

/* The blocks that are stacked one by one: those that are seen at this zoom, at most 8000. */
function stackable(r, p) {
  const least = (state.y1 - state.y0) / p.h * 0.1, wide = (state.x1 - state.x0) / p.w * 0.5;
  const list = [];
  for (let i = 0; i < r.from.length; i++)
    if (r.passes[i] && r.x1[i] > state.x0 && r.x0[i] < state.x1 && sizeOf(r, i) >= least &&
        r.x1[i] - r.x0[i] >= wide) list.push(i);
  return list.length <= 8000 ? list : list.sort((a, b) => sizeOf(r, b) - sizeOf(r, a))
    .slice(0, 8000).sort((a, b) => a - b);
}

/* Blocks in the order of their requests, the oldest below; above them, in grey, all that is not
 * seen one by one. A box is as long as its block stays at one height. */
function drawStacks(c, r, p) {
  const list = stackable(r, p), inks = palette(), boxes = new Map(), live = [];
  const flush = (i, box) => {
    const t = p.y(box.y + sizeOf(r, i));
    c.fillStyle = inks[r.ink[i]];
    drawBox(c, r, i, p.l + box.from, t, box.to - box.from, p.y(box.y) - t);
  };
  for (let px = 0, next = 0; px < p.w; px++) {
    const event = eventAt(p.atX(p.l + px + 0.5));
    let y = 0, kept = 0;
    while (next < list.length && r.from[list[next]] <= event) live.push(list[next++]);
    for (const i of live) {
      const box = boxes.get(i);
      if (box && (r.to[i] <= event || box.y != y)) { flush(i, box); boxes.delete(i); }
      if (r.to[i] <= event) continue;
      if (boxes.has(i)) box.to = px + 1; else boxes.set(i, {y: y, from: px, to: px + 1});
      live[kept++] = i;
      y += sizeOf(r, i);
    }
    live.length = kept;
    c.globalAlpha = 1;
    c.fillStyle = BAND;
    const top = p.y(Math.max(y, r.allocated[columnAt(event)]));
    c.fillRect(p.l + px, top, 1, p.y(y) - top);
  }
  boxes.forEach((box, i) => flush(i, box));
  c.globalAlpha = 1;
  strokeCurve(c, r.allocatedMost, p, state.x0, state.x1, p.y, INK, []);
  strokeCurve(c, r.reservedMost, p, state.x0, state.x1, p.y, LINE, [5, 3]);
}

/* A thin line where settings change, with the text where it has room. */
function drawChanges(c, p) {
  let free = -Infinity;
  c.textAlign = 'left';
  for (const change of changes) {
    const x = Math.round(p.x(xOf(change.event))) + 0.5, text = cut(change.text);
    if (x < p.l || x > p.l + p.w) continue;
    c.fillStyle = INK;
    c.fillRect(x - 0.5, p.t, 1, p.h);
    if (x < free) continue;
    free = x + 10 + c.measureText(text).width;
    c.fillStyle = '#fffd';
    c.fillRect(x + 2, p.t + 2, free - x - 6, 16);
    c.fillStyle = INK;
    c.fillText(text, x + 4, p.t + 14);
  }
}

/* Draws all but the marks, which change with the pointer. */
function drawBase(r) {
  if (!r.canvas.clientWidth) return;
  r.base = r.base || document.createElement('canvas');
  const c = sharp(r.base, r), p = r.p = scalesOf(r);
  c.fillStyle = '#fff';
  c.fillRect(0, 0, r.canvas.clientWidth, r.canvas.clientHeight);
  drawOverview(c, r, p);
  clip(c, p);
  if (isStacked()) drawStacks(c, r, p);
  else {
    drawRanges(c, r, p);
    drawCells(c, r, p, 'cells', REST);
    drawBlocks(c, r, p);
  }
  drawChanges(c, p);
  c.restore();
  drawAxes(c, p);
  r.canvas.dataset.plot = [p.l, p.t, p.w, p.h].join(' ');
  r.canvas.dataset.window = [state.x0, state.x1, state.y0, state.y1].join(' ');
  drawMarks(r);
}

function drawLine(c, p, event, ink, dashes) {
  const x = p.x(xOf(event + 0.5));
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
    const half = (state.x1 - state.x0) * 4 / p.w;
    y = stackable(r, p).reduce((sum, k) => k < i && isLive(r, k, event) ? sum + sizeOf(r, k) : sum,
      0);
    [x0, x1] = [xOf(event) - half, xOf(event) + half];
  }
  const t = p.y(y + sizeOf(r, i));
  return [p.x(x0), t, Math.max(3, p.x(x1) - p.x(x0)), Math.max(3, p.y(y) - t)];
}

function drawMarks(r) {
  if (!r.p) return;
  const c = sharp(r.canvas, r), p = r.p;
  c.drawImage(r.base, 0, 0, r.canvas.clientWidth, r.canvas.clientHeight);
  clip(c, p);
  for (const event of r.oom) drawLine(c, p, event, LINE, [1, 3]);
  if (data.recordedOom !== null) drawLine(c, p, data.recordedOom, LINE, [7, 3]);
  drawLine(c, p, state.moment, INK, []);
  if (state.cursor !== null) drawLine(c, p, state.cursor, '#0072b2', [3, 3]);
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
