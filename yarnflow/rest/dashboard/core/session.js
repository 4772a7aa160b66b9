// What one browser remembers: the token for as long as its tab lives, looks for longer.

const TOKEN = "yarnflow.token";
const THEME = "yarnflow.theme";
/** For browsers that keep nothing. */
const memory = new Map();

function read(kind, name) {
  try {
    return window[kind].getItem(name) ?? "";
  } catch {
    return memory.get(name) ?? "";
  }
}

function write(kind, name, value) {
  try {
    if (value) window[kind].setItem(name, value);
    else window[kind].removeItem(name);
  } catch {
    memory.set(name, value);
  }
}

export function token() {
  return read("sessionStorage", TOKEN);
}

export function setToken(value) {
  write("sessionStorage", TOKEN, value);
}

/** "light", "dark" or "" for what the system says. */
export function theme() {
  return read("localStorage", THEME);
}

export function setTheme(value) {
  write("localStorage", THEME, value);
  applyTheme();
}

export function applyTheme() {
  if (theme()) document.documentElement.dataset.theme = theme();
  else delete document.documentElement.dataset.theme;
}

/** A choice that outlives a reload, such as the metrics shown of a kind of thing. */
export function remembered(name, otherwise) {
  try {
    return JSON.parse(read("sessionStorage", `yarnflow.${name}`));
  } catch {
    return otherwise;
  }
}

export function remember(name, value) {
  write("sessionStorage", `yarnflow.${name}`, JSON.stringify(value));
}
