// Colours and type of the figures, read from the style sheet so that light, dark and paper each
// have one place. Read anew for every drawing: the colour scheme may change while the page is open.

export interface Theme {
  ink: string;
  muted: string;
  rule: string;
  surface: string;
  shade: string;
  font: string;
  color(key: string): string;
}

export function readTheme(): Theme {
  const style = getComputedStyle(document.documentElement);
  const variable = (name: string): string => style.getPropertyValue(`--${name}`).trim();
  return {
    ink: variable('ink'),
    muted: variable('muted'),
    rule: variable('rule'),
    surface: variable('surface'),
    shade: variable('shade'),
    font: style.fontFamily,
    color: (key) => variable(key) || variable('ink'),
  };
}
