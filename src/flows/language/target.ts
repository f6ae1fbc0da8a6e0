/** The places that steps write: `f.order.state`, `v.count`, or `ret`. */
import type { Target } from './step.ts';

export const targetPattern = /^(ret|[fv](\.[A-Za-z_][\w-]*)+)$/;

/** `text` matches the pattern. */
export function parseTarget(text: string): Target {
  const [root = 'ret', ...keys] = text.split('.');
  return { root: root === 'f' || root === 'v' ? root : 'ret', keys };
}
