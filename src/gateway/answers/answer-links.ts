/**
 * Links by which people, and receivers of callbacks, answer tasks of flows: `/answers/{token}`, outside of all tenants.
 *
 * 1. The token is the only credential. It names the tenant, so keys and sessions of the request are not looked at.
 * 2. A token that Millrace did not make is a 404, is counted like other rejected credentials, and costs no body and no database.
 * 3. A browser that asks for a page gets the web interface, which asks for the JSON of the same address.
 * 4. No header allows pages of other origins to read an answer (CORS). A write that a browser sends from such a page is rejected.
 *    Programs send no `Origin`, and may answer.
 * 5. Tokens are in no log, and in no `Referer`: every answer says `no-referrer`.
 */
import { readAnswerToken } from '../../flows/answer-token.ts';
import type { TaskCaller } from '../../contract/roles.ts';
import { MillraceError } from '../../errors.ts';
import type { GatewayContext } from '../installation/context.ts';
import { announcedBody, type BodyBudget } from '../routing/body-budget.ts';
import { requireGroup } from '../routing/capabilities.ts';
import { refuseForeignOrigin } from '../routing/origin.ts';

const path = /^\/answers\/([^/]+)$/;

/** The token of an answer link; undefined: the path is another one. */
export function answerTokenIn(pathname: string): string | undefined {
  return path.exec(pathname)?.[1];
}

/** A path without the secrets in it, for logs. */
export function withoutAnswerToken(pathname: string): string {
  return pathname.replace(/(\/answers\/).+$/, '$1…');
}

/** Whether a browser shows the answer, rather than a script or a program. */
export function wantsPage({ method, headers }: Request): boolean {
  return (method === 'GET' || method === 'HEAD') && /\btext\/html\b/.test(headers.get('accept') ?? '');
}

export interface LinkOptions {
  readonly context: GatewayContext;
  readonly bodies: BodyBudget;
  readonly remote: string | null;
}

/** The answer of the tenant's engine. */
export async function openLink(request: Request, token: string, options: LinkOptions): Promise<Response> {
  const { context, bodies, remote } = options;
  refuseForeignOrigin(request, undefined);
  const claims = readAnswerToken(context.secrets, token, context.time.now());
  if (claims === undefined) {
    context.rejectedCredentials.note('answer link', remote);
    throw unknownLink();
  }
  const { tenantId } = claims;
  const row = await context.loader.byId(tenantId).catch((error: unknown) => {
    throw error instanceof MillraceError && error.code === 'not_found' ? unknownLink() : error;
  });
  requireGroup((await context.loader.open(row)).engine, 'flows', row.name);
  const giveBack = bodies.take(announcedBody(request), holderOf(tenantId));
  try {
    const answer = await context.loader.fetch(row, request, undefined);
    answer.headers.set('cache-control', 'no-store');
    return answer;
  } finally {
    giveBack();
  }
}

/** Bodies count for the tenant whose task is answered, as those of its running tasks do. */
function holderOf(tenantId: string): TaskCaller {
  return { kind: 'task', tenantId, run: '', lease: 0 };
}

function unknownLink(): MillraceError {
  return new MillraceError('not_found', 'this link is not known; copy all of it, without line breaks');
}
