// Places for the vertices of a job's graph, layer by layer (Sugiyama's method), and the lines between them.

const SWEEPS = 8;

/**
 * Place nodes of one size.
 *
 * @param {string[]} ids
 * @param {{from: string, to: string}[]} edges between ids; what closes a cycle is drawn backwards
 * @param {{along: number, across: number, layerGap: number, gap: number}} size of a node along the flow and
 *   across it, and the distances between layers and within one
 * @returns {{places: Map<string, {along: number, across: number}>, routes: {from, to, points}[], along, across}}
 *   upper left corners, the points of every edge from its first to its last, and the size of all
 */
export function layout(ids, edges, size) {
  const known = new Set(ids);
  const wanted = edges.filter(({ from, to }) => known.has(from) && known.has(to) && from !== to);
  const layers = layersOf(ids, wanted);
  const rows = [];
  for (const id of ids) (rows[layers.get(id)] ??= []).push(node(id, size.across));
  const byId = new Map(rows.flat().map((each) => [each.id, each]));
  const routes = wanted.map((edge) => ({ ...edge, chain: chain(edge, layers, rows, byId) }));
  order(rows);
  straighten(rows, size.gap);
  const lowest = Math.min(0, ...rows.flat().map((each) => each.at));
  for (const each of rows.flat()) each.at -= lowest;
  const step = size.along + size.layerGap;
  const places = new Map(ids.map((id) => [id, { along: layers.get(id) * step, across: byId.get(id).at }]));
  return {
    places,
    routes: routes.map(({ chain: nodes, ...edge }) => ({
      ...edge,
      points: points(nodes, layers.get(edge.from), layers.get(edge.to), step, size),
    })),
    along: Math.max(0, rows.length * step - size.layerGap),
    across: Math.max(0, ...rows.flat().map((each) => each.at + each.width)),
  };
}

function node(id, width) {
  return { id, width, at: 0, before: [], after: [] };
}

/** Longest way from a source; edges back into the way that led to them are not counted. */
function layersOf(ids, edges) {
  const inputs = new Map(ids.map((id) => [id, []]));
  for (const { from, to } of edges) inputs.get(to).push(from);
  const layers = new Map();
  const open = new Set();
  const visit = (id) => {
    if (layers.has(id)) return layers.get(id);
    if (open.has(id)) return -1;
    open.add(id);
    const layer = 1 + Math.max(-1, ...inputs.get(id).map(visit));
    open.delete(id);
    layers.set(id, layer);
    return layer;
  };
  ids.forEach(visit);
  return layers;
}

/** The nodes an edge goes through: in layers between its ends it needs room of its own. */
function chain({ from, to }, layers, rows, byId) {
  const [first, last] = [layers.get(from), layers.get(to)];
  const nodes = [byId.get(from)];
  for (let layer = first + 1; layer < last; layer++) {
    const room = node(null, 0);
    rows[layer].push(room);
    nodes.push(room);
  }
  nodes.push(byId.get(to));
  if (last > first) {
    nodes.slice(1).forEach((each, index) => {
      nodes[index].after.push(each);
      each.before.push(nodes[index]);
    });
  }
  return nodes;
}

/** Fewer crossings: every node goes where the middle of its neighbours is, forwards and backwards. */
function order(rows) {
  const number = () => rows.forEach((row) => row.forEach((each, index) => (each.index = index)));
  number();
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const forwards = sweep % 2 === 0;
    for (const row of forwards ? rows : [...rows].reverse()) {
      const middle = new Map(
        row.map((each) => {
          const others = forwards ? each.before : each.after;
          return [each, others.length ? mean(others.map((other) => other.index)) : each.index];
        }),
      );
      row.sort((one, other) => middle.get(one) - middle.get(other));
      row.forEach((each, index) => (each.index = index));
    }
  }
}

/** Straighter lines: move every node towards its neighbours as far as its layer has room. */
function straighten(rows, gap) {
  for (const row of rows)
    pack(
      row,
      row.map(() => 0),
      gap,
    );
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const forwards = sweep % 2 === 0;
    for (const row of forwards ? rows : [...rows].reverse()) {
      pack(
        row,
        row.map((each) => {
          const others = forwards ? each.before : each.after;
          return others.length ? mean(others.map(center)) - each.width / 2 : each.at;
        }),
        gap,
      );
    }
  }
}

/** Places as near as can be to the wanted ones, in the given order and without overlap. */
function pack(row, wanted, gap) {
  // nodes that are in each other's way become a block, whose wish is the mean of theirs
  const blocks = [];
  row.forEach((each, index) => {
    let block = { nodes: [each], wish: wanted[index], width: each.width };
    let last = blocks.at(-1);
    while (last && last.wish + last.width + gap > block.wish) {
      const shifted = block.wish - last.width - gap;
      const many = last.nodes.length + block.nodes.length;
      block = {
        nodes: [...last.nodes, ...block.nodes],
        wish: (last.wish * last.nodes.length + shifted * block.nodes.length) / many,
        width: last.width + gap + block.width,
      };
      blocks.pop();
      last = blocks.at(-1);
    }
    blocks.push(block);
  });
  for (const { nodes, wish } of blocks) {
    let at = wish;
    for (const each of nodes) {
      each.at = at;
      at += each.width + gap;
    }
  }
}

function points(nodes, first, last, step, size) {
  return nodes.flatMap((each, index) => {
    const across = center(each);
    if (index === 0) return [{ along: first * step + size.along, across }];
    if (index === nodes.length - 1) return [{ along: last * step, across }];
    const along = (first + index) * step;
    return [
      { along, across },
      { along: along + size.along, across },
    ];
  });
}

function center(each) {
  return each.at + each.width / 2;
}

function mean(values) {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
