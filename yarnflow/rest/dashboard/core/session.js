// What one browser remembers: the token for as long as its tab lives, looks for longer.

const TOKEN = "yarnflow.token";
const THEME = "yarnflow.theme";

export function token() {
  return sessionStorage.getItem(TOKEN) ?? "";
}

export function setToken(value) {
  if (value) sessionStorage.setItem(TOKEN, value);
  else sessionStorage.removeItem(TOKEN);
}

/** "light", "dark" or "" for what the system says. */
export function theme() {
  return localStorage.getItem(THEME) ?? "";
}

export function setTheme(value) {
  if (value) localStorage.setItem(THEME, value);
  else localStorage.removeItem(THEME);
  applyTheme();
}

export function applyTheme() {
  if (theme()) document.documentElement.dataset.theme = theme();
  else delete document.documentElement.dataset.theme;
}

/** A choice that outlives a reload, such as the metrics shown of a kind of thing. */
export function remembered(name, otherwise) {
  try {
    return JSON.parse(sessionStorage.getItem(`yarnflow.${name}`)) ?? otherwise;
  } catch {
    return otherwise;
  }
}

export function remember(name, value) {
  sessionStorage.setItem(`yarnflow.${name}`, JSON.stringify(value));
}
