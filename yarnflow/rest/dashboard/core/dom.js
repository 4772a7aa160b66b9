// Elements described as values, and a document brought to what is described.
// Data reach the document as text nodes, attributes and properties only; there is no way to insert markup.

const SVG = "http://www.w3.org/2000/svg";
/** Set as properties: their attributes are only what an element starts with. */
const PROPERTIES = new Set(["value", "checked", "open", "selected", "indeterminate"]);
const described = Symbol("what the node was made of");

/**
 * Describe an element.
 *
 * Props: attributes; `on…` functions; `style` as an object; `key` to recognise it among its siblings;
 * `ref` called with the element when it is made, and only with a key, so that no other element is taken for
 * it; `own` when something else keeps its children.
 * A child that is null, false or undefined keeps its place, so that its siblings stay the same nodes.
 */
export function h(tag, props, ...children) {
  return { tag, props: props ?? {}, children: flat(children) };
}

/** Make the children of an element what is described, and keep every node that can be kept. */
export function render(parent, ...children) {
  patchChildren(parent, flat(children));
}

function flat(children) {
  return children.flat(Infinity).map((child) => {
    if (child === null || child === undefined || child === false || child === true) return "";
    return typeof child === "object" ? child : String(child);
  });
}

function patchChildren(parent, wanted) {
  const keyed = new Map();
  const unkeyed = [];
  for (const node of parent.childNodes) {
    const key = node[described]?.props.key;
    if (key === undefined) unkeyed.push(node);
    else keyed.set(key, node);
  }
  let next = 0;
  const kept = wanted.map((child) => {
    const key = child.props?.key;
    const node = key === undefined ? unkeyed[next++] : keyed.get(key);
    return node && fits(node, child) ? node : null;
  });
  const staying = new Set(kept);
  // first what goes: a node that need not be moved keeps the focus
  for (const node of [...parent.childNodes]) if (!staying.has(node)) node.remove();
  let place = parent.firstChild;
  wanted.forEach((child, index) => {
    const node = kept[index] ?? create(child, parent);
    if (kept[index]) patch(node, child);
    if (node === place) place = place.nextSibling;
    else parent.insertBefore(node, place);
  });
}

function fits(node, child) {
  if (typeof child === "string") return node.nodeType === Node.TEXT_NODE;
  return node[described]?.tag === child.tag;
}

function create(child, parent) {
  if (typeof child === "string") return document.createTextNode(child);
  const svg = child.tag === "svg" || (parent.namespaceURI === SVG && parent.localName !== "foreignObject");
  const node = svg ? document.createElementNS(SVG, child.tag) : document.createElement(child.tag);
  setProps(node, {}, child.props);
  if (!child.props.own) patchChildren(node, child.children);
  node[described] = child;
  // a select's value needs its options
  if ("value" in child.props && child.tag === "select") node.value = child.props.value;
  child.props.ref?.(node);
  return node;
}

function patch(node, child) {
  if (typeof child === "string") {
    if (node.data !== child) node.data = child;
    return;
  }
  setProps(node, node[described].props, child.props);
  if (!child.props.own) patchChildren(node, child.children);
  node[described] = child;
}

function setProps(node, before, after) {
  for (const name of Object.keys(before)) if (!(name in after)) setProp(node, name, before[name], null);
  for (const [name, value] of Object.entries(after)) {
    if (value !== before[name] || name === "style") setProp(node, name, before[name], value);
  }
}

function setProp(node, name, before, value) {
  if (name === "key" || name === "ref" || name === "own") return;
  if (name.startsWith("on")) node[name] = value ?? null;
  else if (name === "style") setStyle(node, before ?? {}, value ?? {});
  else if (PROPERTIES.has(name)) node[name] = value ?? (name === "value" ? "" : false);
  else if (value === null || value === undefined || value === false) node.removeAttribute(name);
  else node.setAttribute(name, value === true ? "" : value);
}

// through the object model: a style attribute would need a laxer content security policy
function setStyle(node, before, after) {
  for (const name of Object.keys(before)) if (!(name in after)) node.style.removeProperty(name);
  for (const [name, value] of Object.entries(after)) {
    if (before[name] !== value) node.style.setProperty(name, value);
  }
}
