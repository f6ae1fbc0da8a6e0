/**
 * Tokens of links by which a person, or the receiver of a callback, answers a task without a key. The gateway reads the tenant from a
 * token, and the tenant's engine verifies it. A token is of use until its task is answered or has ended, at most for a year.
 */
import type { Secrets } from '../contract/context.ts';

export interface AnswerClaims {
  readonly tenantId: string;
  readonly execution: string;
  readonly nid: string;
  readonly attempt: number;
  readonly expiresAtMs: number;
}

const lifeMs = 366 * 24 * 3_600_000;
/** Links of one task are alike within a day: the interpreter may ask for them again, and its result must be the same. */
const grainMs = 24 * 3_600_000;

export function makeAnswerToken(
  secrets: Pick<Secrets, 'signLink'>,
  { tenantId, execution, nid, attempt }: Omit<AnswerClaims, 'expiresAtMs'>,
  nowMs: number,
): string {
  const expiresAtMs = Math.floor(nowMs / grainMs) * grainMs + lifeMs;
  return secrets.signLink(JSON.stringify([tenantId, execution, nid, attempt, expiresAtMs]));
}

/** Undefined: the token is forged or too old. */
export function readAnswerToken(
  secrets: Pick<Secrets, 'verifyLink'>,
  token: string,
  nowMs: number,
): AnswerClaims | undefined {
  const claims = secrets.verifyLink(token);
  if (claims === undefined) return undefined;
  const [tenantId, execution, nid, attempt, expiresAtMs] = JSON.parse(claims) as [
    string,
    string,
    string,
    number,
    number,
  ];
  return expiresAtMs > nowMs ? { tenantId, execution, nid, attempt, expiresAtMs } : undefined;
}
