/** Matchers for values that a suite does not know exactly. Typed as unknown, because vitest's own matchers are `any`. */
import { expect } from 'vitest';

export const anyText: unknown = expect.any(String);
export const anyNumber: unknown = expect.any(Number);

export function textWith(part: string): unknown {
  return expect.stringContaining(part);
}

/** The error of a call that was answered with this status. */
export function refusal(status: number): unknown {
  return expect.objectContaining({ status });
}
