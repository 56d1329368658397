/* view.js - what people do with the interactive view: finding and selecting blocks, the holders of
 * a moment and their flame graph, moving by pointer, touch and keys. view_map.js precedes it in the
 * same function. */

/* -- finding blocks -------------------------------------------------------------------------- */

const blockAt = (r, px, py) => isStacked() ? stackedAt(r, eventAt(r.p.atX(px)), r.p.atY(py)) :
  mappedAt(r, r.p.atX(px), r.p.atY(py));

/* The smallest of the nearest blocks, within two pixels of the place; -1: none. */
function mappedAt(r, x, y) {
  const dx = (state.x1 - state.x0) / r.p.w * 2, dy = (state.y1 - state.y0) / r.p.h * 2;
  let best = -1, near = Infinity;
  for (let i = 0; i < r.from.length; i++) {
    const low = bottom(r, i), size = sizeOf(r, i);
    if (!r.passes[i] || r.x0[i] > x + dx || r.x1[i] < x - dx || low > y + dy ||
        low + size < y - dy) continue;
    const away = Math.max(r.x0[i] - x, x - r.x1[i], 0) / dx +
      Math.max(low - y, y - low - size, 0) / dy;
    if (away < near || (away == near && size < sizeOf(r, best))) [best, near] = [i, away];
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

const cellWords = (r) => plural(Math.ceil(events / data.wide), 'event') + ' by ' +
  bytes(r.bytes / data.high);

/* What the map shows where no block is seen: a cell of others, or nothing. */
function placeAt(r, px, py) {
  const event = eventAt(r.p.atX(px)), y = r.p.atY(py);
  if (isStacked()) return y < 0 || y >= r.allocated[columnAt(event)] ? '' :
    'Blocks that are too small for this zoom, are filtered out, or were added up';
  if (!r.cells.length || y < 0 || y >= r.bytes) return '';
  const share = r.cells[Math.floor(y / r.bytes * data.high) * data.wide +
    Math.floor(event * data.wide / events)] / 255;
  return share ? 'Blocks that were added up: ' + percent(share) + ' of this cell of ' +
    cellWords(r) : '';
}

/* -- holders --------------------------------------------------------------------------------- */

const groupOf = (r, kind) => hasStacks ? r.node[kind] : r.requested[kind];
const groupName = (key) => key == 'rest' ? 'blocks that were added up' : hasStacks ? nameOf(key) :
  'blocks of ' + bytes(key);
const sum = (list, key) => list.reduce((total, g) => total + g[key], 0);

/* What is live after the event, by stack, or by size without stacks. */
function holdersAt(r, event) {
  const groups = new Map();
  const add = (key, bytes, blocks) => {
    if (!groups.has(key)) groups.set(key, {key: key, bytes: 0, blocks: 0});
    groups.get(key).bytes += bytes;
    groups.get(key).blocks += blocks;
  };
  for (let i = 0; i < r.from.length; i++)
    if (r.passes[i] && isLive(r, i, event))
      add(groupOf(r, r.kind[i]), r.requested[r.kind[i]], 1);
  if (r.moment.length && !isFiltered()) {
    const m = find(r.moment, event);
    const end = m + 1 < r.moment.length ? r.momentFirst[m + 1] : r.sumNode.length;
    for (let k = r.momentFirst[m]; k < end; k++)
      add(hasStacks ? r.sumNode[k] : 'rest', r.sumRequested[k], r.sumBlocks[k]);
  }
  return [...groups.values()].sort((a, b) => b.bytes - a.bytes);
}

function addRow(g, all, words) {
  const row = $('.v-holders tbody').insertRow();
  for (const text of [bytes(g.bytes), percent(g.bytes / all), count(g.blocks)])
    row.insertCell().textContent = text;
  row.cells[0].dataset.v = g.bytes;
  const cell = row.insertCell();
  cell.className = 'l';
  if (g.key === undefined) { cell.textContent = words; return; }
  const button = document.createElement('button'), isOn = state.held === g.key;
  button.textContent = words;
  if (hasStacks && g.key != 'rest') button.title = frames(g.key).map(frame).join('\n');
  button.setAttribute('aria-pressed', isOn);
  row.className = isOn ? 'on' : '';
  button.onclick = () => mark(isOn ? null : g.key);
  cell.append(button);
}

function writeHolders() {
  const r = state.picked ? state.picked.run : runs[0], list = holdersAt(r, state.moment);
  const all = sum(list, 'bytes'), blocks = sum(list, 'blocks'), rest = list.slice(ROWS);
  $('.v-holders tbody').textContent = '';
  for (const g of list.slice(0, ROWS)) addRow(g, all, groupName(g.key));
  if (rest.length) addRow({bytes: sum(rest, 'bytes'), blocks: sum(rest, 'blocks')}, all,
    count(rest.length) + ' more');
  $('.v-moment').textContent = 'Who holds memory at ' +
    (state.moment == data.peak ? 'the peak, ' : '') + at(state.moment) + ': ' +
    plural(blocks, 'block') + (blocks == 1 ? ' holds ' : ' hold ') + bytes(all) +
    (runs.length > 1 ? ', under ' + r.policy : '');
  $('.v-filter').textContent = filterWords(r);
  writeFlame(list, all);
}

function filterWords(r) {
  const m = r.moment.length ? r.moment[find(r.moment, state.moment)] : state.moment;
  return isFiltered() ? 'Only blocks that pass the filter' + (r.rest ? ' and are written one by ' +
    'one; no filter knows the ' + plural(r.rest, 'block') + ' that were added up.' : '.') :
    m == state.moment ? '' : 'The blocks that were added up are those of ' + at(m) + ', the last ' +
    'moment before that the page has.';
}

/* Highlights the blocks of the kinds that pass; null: none. */
function highlight(passes) {
  for (const r of runs)
    r.marked = passes && Uint8Array.from(r.kind, (kind) => passes(r, kind));
  writeHolders();
  draw();
}

function mark(key) {
  state.held = key;
  state.frame = 0;
  highlight(key === null ? null : (r, kind) => groupOf(r, kind) === key);
}

/* -- flame graph ----------------------------------------------------------------------------- */

/* The bytes of each node with all below, and the children of each, the largest first. */
function treeOf(list) {
  const total = new Map(), children = new Map();
  for (const g of list)
    for (const n of frames(g.key)) {
      if (!total.has(n)) {
        const parent = parentOf(n);
        children.set(parent, [...(children.get(parent) || []), n]);
      }
      total.set(n, (total.get(n) || 0) + g.bytes);
    }
  children.forEach((c) => c.sort((a, b) => total.get(b) - total.get(a)));
  return {total: total, children: children};
}

function addFrame(n, depth, left, width, words) {
  const button = document.createElement('button');
  button.style.cssText = 'left:' + left + '%;width:' + width + '%;top:' + depth * 20 + 'px';
  button.className = (depth % 2 ? 'odd' : '') + (n && n == state.frame ? ' on' : '');
  button.textContent = button.title = words;
  button.onclick = () => pickFrame(n);
  $('.v-flame').append(button);
}

function writeFlame(list, all) {
  for (const name of ['.v-flame', '.v-flame-title', '.v-frame']) $(name).hidden = !hasStacks;
  if (!hasStacks) return;
  const tree = treeOf(list), path = frames(state.frame), held = (n) => n ? tree.total.get(n) || 0 :
    all;
  const whole = held(state.frame);
  let deepest = -1, narrow = 0;
  const put = (n, depth, left) => {
    const isOnPath = n == 0 || path.includes(n), width = isOnPath ? 100 : held(n) / whole * 100;
    if (width < 0.25) { narrow++; return; }
    deepest = Math.max(deepest, depth);
    addFrame(n, depth, left, width, (n ? frame(n) : 'all') + ', ' + bytes(held(n)) + ', ' +
      percent(held(n) / all));
    const on = path.find((child) => parentOf(child) == n); /* on the way, only that child */
    for (const child of isOnPath && on ? [on] : tree.children.get(n) || []) {
      put(child, depth + 1, left);
      left += held(child) / whole * 100;
    }
  };
  $('.v-flame').textContent = '';
  put(0, 0, 0);
  $('.v-flame').style.height = (deepest + 1) * 20 + 'px';
  $('.v-frame').textContent = 'The width of a frame is the bytes that it and the frames below it ' +
    'hold. A click on a frame widens it and highlights its blocks.' + (narrow ? ' Too narrow to ' +
    'be drawn: ' + plural(narrow, 'frame') + '.' : '');
}

function pickFrame(n) {
  const known = new Map();
  const isUnder = (leaf) => known.has(leaf) ? known.get(leaf) :
    known.set(leaf, frames(leaf).includes(n)).get(leaf);
  state.frame = n == state.frame ? 0 : n;
  state.held = null;
  highlight(state.frame ? (r, kind) => isUnder(r.node[kind]) : null);
}

/* -- moving ---------------------------------------------------------------------------------- */

function setWindow(x0, x1, y0, y1) {
  const fit = (low, high, max, least) => {
    const span = Math.min(max, Math.max(least, high - low));
    low = Math.min(Math.max(0, (low + high - span) / 2), max - span);
    return [low, low + span];
  };
  [state.x0, state.x1] = fit(x0, x1, maxX(), maxX() * 8 / Math.max(8, events));
  [state.y0, state.y1] = fit(y0, y1, maxY(), 4096);
  draw();
}

const showAll = () => setWindow(0, maxX(), 0, maxY());

/* Zooms by a factor around a place in [0, 1] of the window. */
function zoom(by, u, v, onlyX) {
  const w = state.x1 - state.x0, h = state.y1 - state.y0, byY = onlyX ? 1 : by;
  const x = state.x0 + u * w * (1 - by), y = state.y0 + v * h * (1 - byY);
  setWindow(x, x + w * by, y, y + h * byY);
}

/* Moves by a share of the window. */
function move(u, v) {
  const shift = (d, low, high, max) => Math.max(-low, Math.min(d * (high - low), max - high));
  const x = shift(u, state.x0, state.x1, maxX()), y = shift(v, state.y0, state.y1, maxY());
  setWindow(state.x0 + x, state.x1 + x, state.y0 + y, state.y1 + y);
}

/* Says where the data hold nothing finer: cells of more than 12 pixels, or single events. */
function sayLevel() {
  const cell = maxX() / data.wide / (state.x1 - state.x0) * (runs[0].p ? runs[0].p.w : 0);
  const rest = runs.filter((r) => r.rest);
  $('.v-level').textContent = rest.length && cell > 12 && !isStacked() ?
    'This is finer than the data: the blocks that were added up are in cells of ' +
    rest.map(cellWords).join(' and ') + '.' : state.x1 - state.x0 <= 8 && !isByTime() &&
    events > 8 ? 'This is the finest level: single events.' : '';
}

function goTo(event, words) {
  const half = Math.max(30, events / 40);
  state.moment = event;
  pick(runs[0], -1);
  setWindow(xOf(Math.max(0, event - half)), xOf(Math.min(events, event + half)), 0, maxY());
  writeHolders();
  sayCursor(event);
  const most = $('.v-holders button');
  $('.v-block').textContent = words + ' is ' + at(event) + '. ' +
    $('.v-moment').textContent.replace(/^.*?: /, '') + (most ? '. Most is held by ' +
    most.textContent : '') + '.';
}

/* -- selection ------------------------------------------------------------------------------- */

function pick(r, i) {
  state.picked = i < 0 ? null : {run: r, block: i};
  $('.v-block').textContent = i < 0 ? 'No block is selected.' : describe(r, i);
  $('.v-stack').hidden = i < 0 || !hasStacks;
  $('.v-stack').textContent = i < 0 ? '' : frames(nodeAt(r, i)).map(frame).join('\n');
  runs.forEach(drawMarks);
}

/* Selects a block without the pointer, and shows it. */
function pickAndShow(r, i) {
  if (i < 0) return;
  if (!isLive(r, i, state.moment)) state.moment = r.from[i];
  const y = isStacked() ? state.y0 : bottom(r, i);
  if (r.x1[i] < state.x0 || r.x0[i] > state.x1 || y < state.y0 || y > state.y1)
    move((r.x0[i] - (state.x0 + state.x1) / 2) / (state.x1 - state.x0),
      (y - (state.y0 + state.y1) / 2) / (state.y1 - state.y0));
  pick(r, i);
  writeHolders();
}

/* The next block that passes the filters: before (-1) or after in the order of the requests, or
 * below or above at the moment. */
function neighbour(r, i, along, up) {
  if (along) {
    do i += along; while (i >= 0 && i < r.from.length && !r.passes[i]);
    return i < r.from.length ? i : -1;
  }
  let best = -1, near = Infinity;
  for (let k = 0; k < r.from.length; k++) {
    const away = (isStacked() ? k - i : bottom(r, k) - bottom(r, i)) * up;
    if (r.passes[k] && isLive(r, k, state.moment) && away > 0 && away < near)
      [best, near] = [k, away];
  }
  return best;
}

/* The block in the middle of the map, or the largest one that is live there. */
function middleBlock(r) {
  const event = eventAt((state.x0 + state.x1) / 2);
  let best = blockAt(r, r.p.l + r.p.w / 2, r.p.t + r.p.h / 2);
  for (let i = 0, none = best < 0; none && i < r.from.length; i++)
    if (r.passes[i] && isLive(r, i, event) && (best < 0 || sizeOf(r, i) > sizeOf(r, best)))
      best = i;
  return best;
}

function step(r, along, up) {
  const isHere = state.picked && state.picked.run == r;
  pickAndShow(r, isHere ? neighbour(r, state.picked.block, along, up) : middleBlock(r));
}

function sayCursor(event) {
  const c = columnAt(event), change = changes.filter((x) => x.event <= event).pop();
  $('.v-cursor').textContent = 'At ' + at(event) + ': ' + runs.map((r) =>
    (runs.length > 1 ? r.policy + ' ' : '') + 'reserved ' + bytes(r.reservedMost[c]) +
    ', allocated ' + bytes(r.allocatedMost[c]) + ', requested ' + bytes(r.requestedMost[c]))
    .join('; ') + (data.columns < events ? ' (the most of ' +
    plural(Math.ceil(events / data.columns), 'event') + ').' : '.') +
    (change ? ' Settings: ' + change.text + ', since ' + at(change.event) + '.' : '');
}

/* -- input ----------------------------------------------------------------------------------- */

/* Tells what is under the pointer. */
function hover(r, px, py) {
  const inside = px >= r.p.l && px <= r.p.l + r.p.w && py >= r.p.t && py <= r.p.t + r.p.h;
  const i = inside ? blockAt(r, px, py) : -1, tip = r.tip;
  state.cursor = inside ? eventAt(r.p.atX(px)) : null;
  if (inside) sayCursor(state.cursor);
  tip.textContent = i < 0 ? inside ? placeAt(r, px, py) : '' : describe(r, i) + '\n' +
    frames(nodeAt(r, i)).slice(0, 6).map(frame).join('\n');
  tip.hidden = !tip.textContent;
  tip.style.left = Math.max(0, Math.min(px + 14, r.canvas.clientWidth - tip.offsetWidth)) + 'px';
  tip.style.top = py + r.canvas.offsetTop + 16 + 'px';
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

function placeOf(r, e) {
  const box = r.canvas.getBoundingClientRect();
  return [e.clientX - box.left, e.clientY - box.top];
}

/* Zooms by a factor around a place of the canvas. */
const zoomAt = (r, by, px, py, onlyX) => zoom(by, (px - r.p.l) / r.p.w,
  (r.p.t + r.p.h - py) / r.p.h, onlyX);

let scrolled = -Infinity; /* when the page was scrolled last */
addEventListener('scroll', () => { scrolled = performance.now(); }, {passive: true});

function onWheel(r, e) {
  const amount = e.deltaY || e.deltaX; /* with Shift it may be sideways */
  const isAll = state.x1 - state.x0 >= maxX() && state.y1 - state.y0 >= maxY();
  if ((isAll && amount > 0) || performance.now() - scrolled < 300) return; /* the page scrolls */
  e.preventDefault();
  zoomAt(r, Math.exp(Math.max(-1, Math.min(1, amount / 300))), ...placeOf(r, e), e.shiftKey);
}

/* One pointer drags, two pinch. */
function addPointers(r) {
  const down = new Map(), on = (name, use) => r.canvas.addEventListener(name, use);
  let moved = 0;
  const gap = () => {
    const [a, b] = [...down.values()];
    return Math.hypot(a[0] - b[0], a[1] - b[1]) || 1;
  };
  on('pointerdown', (e) => {
    if (!down.size) moved = 0;
    down.set(e.pointerId, placeOf(r, e));
    r.canvas.setPointerCapture(e.pointerId);
  });
  on('pointermove', (e) => {
    const last = down.get(e.pointerId), now = placeOf(r, e);
    if (!last) { hover(r, ...now); return; }
    const before = down.size == 2 ? gap() : 0;
    moved += Math.hypot(now[0] - last[0], now[1] - last[1]);
    down.set(e.pointerId, now);
    if (before) zoomAt(r, before / gap(), ...now, false);
    else if (moved > 4) move((last[0] - now[0]) / r.p.w, (now[1] - last[1]) / r.p.h);
  });
  on('pointerup', (e) => {
    if (down.size == 1 && moved <= 4) click(r, ...placeOf(r, e));
    down.delete(e.pointerId);
  });
  on('pointercancel', (e) => down.delete(e.pointerId));
  on('pointerleave', () => {
    r.tip.hidden = true;
    state.cursor = null;
    runs.forEach(drawMarks);
  });
}

const ARROWS = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1]};

function onKey(r, e) {
  const arrow = ARROWS[e.key], nearer = () => zoom(0.7, 0.5, 0.5, false);
  const keys = {
    '+': nearer, '=': nearer, '-': () => zoom(1 / 0.7, 0.5, 0.5, false), Home: showAll,
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
  if (FILTERS.includes(key)) { filter(); writeHolders(); }
  if (key == 'axis') { runs.forEach(place); showAll(); }
  if (key == 'colour' || key == 'mode') colour();
  if (key == 'mode') setWindow(state.x0, state.x1, 0, maxY());
  draw();
}

/* -- the page -------------------------------------------------------------------------------- */

function addRun(r) {
  const figure = document.createElement('figure'), caption = document.createElement('figcaption');
  r.canvas = document.createElement('canvas');
  r.tip = document.createElement('div');
  r.tip.className = 'v-tip';
  r.tip.hidden = true;
  caption.textContent = r.policy + (r.bound ? ', ' + r.bound : '') + ': peak reserved ' +
    bytes(r.peakReserved) + (r.ooms ? ', ' + plural(r.ooms, 'OOM') : '');
  r.canvas.tabIndex = 0;
  r.canvas.setAttribute('role', 'application');
  r.canvas.setAttribute('aria-label', 'Map of the memory of ' + data.trace + ' under ' +
    caption.textContent + '. ' + $('.v-help').textContent);
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
  addOptions('stream', data.streams.map((handle) => 'stream ' + handle));
  addOptions('pool', data.pools);
  $('[data-set=axis]').closest('label').hidden = !isTimed;
  $('[data-set=stack]').closest('label').hidden = !hasStacks;
  $('option[value=site]').hidden = !hasStacks;
  $('[data-set=colour]').value = state.colour;
  $('[data-go=oom]').hidden = oom == Infinity;
  $('[data-go=peak]').onclick = () => goTo(data.peak, 'The peak');
  $('[data-go=oom]').onclick = () => goTo(oom, 'The failed request');
  $('[data-go=all]').onclick = showAll;
  root.querySelectorAll('[data-set]').forEach((input) => input.addEventListener('input', () => {
    const key = input.dataset.set, isSize = key == 'least' || key == 'most';
    const isWrong = isSize && input.value && isNaN(parseSize(input.value));
    input.setCustomValidity(isWrong ? 'a size, such as 1 MiB' : '');
    if (!isWrong) onSet(key, input.value);
  }));
}

/* What was written, what was added up, and what has no room. */
function restOf(r) {
  return (runs.length > 1 ? r.policy + ': ' : '') + (!r.rest ? 'every block (' +
    count(r.blocks) + ') is written one by one' : count(r.written) + ' of ' + plural(r.blocks, 'block') +
    ' are written one by one: ' + (r.hasPeak ? 'those at the peak, and ' : '') +
    (r.least === null ? 'no others' : 'those whose size times lifetime is at least ' +
    bytes(r.least) + ' times one event') +
    '. The ' + count(r.rest) + ' others are added up in cells of ' + cellWords(r) +
    ', and by stack at ' + plural(r.moment.length, 'moment')) + (r.rangesWritten < r.ranges ?
    '; so are the ' + count(r.ranges - r.rangesWritten) + ' smallest reserved ranges' : '') + '.';
}

$('.v-said').textContent = data.trace + ', ' + data.device + ', ' + plural(events, 'event') +
  '; ' + runs.map(restOf).join(' ') + (data.stacksLeftOut ? ' Of the stacks, ' +
  count(data.stacksLeftOut) + ' have no room.' : '') + ' Holders are listed by requested bytes; ' +
  'a block that a stream still uses counts.';
runs.forEach(addRun);
runs.forEach(place);
addTools();
colour();
writeHolders();
sayCursor(state.moment);
/* A folded part of a page is drawn when it is unfolded; before printing, at once. */
addEventListener('beforeprint', () => {
  const folded = root.closest('details:not([open])');
  if (folded) folded.open = true;
  runs.forEach(drawBase);
});
new ResizeObserver(draw).observe($('.v-runs'));
runs.forEach(drawBase);
