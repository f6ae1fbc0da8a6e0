/** Light or dark: as the system has it, unless chosen otherwise in this browser. */
import { useSyncExternalStore } from 'react';

const themes = ['system', 'light', 'dark'] as const;
export type Theme = (typeof themes)[number];

const name = 'millrace theme';
const listeners = new Set<() => void>();

function stored(): Theme {
  return themes.find((theme) => theme === localStorage.getItem(name)) ?? 'system';
}

/** Before anything is drawn, and whenever it changes, also in another tab. */
export function applyTheme(): void {
  const theme = stored();
  if (theme === 'system') delete document.documentElement.dataset['theme'];
  else document.documentElement.dataset['theme'] = theme;
  for (const listener of listeners) listener();
}

addEventListener('storage', applyTheme);

export function chooseTheme(theme: Theme): void {
  if (theme === 'system') localStorage.removeItem(name);
  else localStorage.setItem(name, theme);
  applyTheme();
}

export function useTheme(): Theme {
  return useSyncExternalStore((listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, stored);
}
