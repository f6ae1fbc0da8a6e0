/**
 * Remembers for at most 5 s which caller and tenant an `Authorization` header leads to, so that a publisher's next event needs
 * neither a hash nor a lookup. A revoked key and a changed tenant are forgotten at once.
 */
import { defaultTenant } from '../../contract/tenants.ts';
import type { Caller } from '../../contract/roles.ts';
import { MillraceError } from '../../errors.ts';
import { within } from '../../kernel/service.ts';
import { type Loader, unlessGone } from '../../loader/loader.ts';
import { type Callers, rejectOtherTenant } from '../access/callers.ts';

const admissionTimes = { rememberMs: 5_000, identifyMs: 10_000 } as const;
const maxRemembered = 10_000;

export interface Admission {
  readonly caller: Caller;
  readonly tenantId: string;
}

/** The parts of a request that lead to its caller and tenant. */
export interface Presented {
  readonly authorization: string;
  /** The name in the path; undefined: the key determines the tenant. */
  readonly tenant: string | undefined;
}

export class Admissions {
  readonly #callers: Callers;
  readonly #loader: Loader;
  #known = new Map<string, { readonly admission: Admission; readonly untilMs: number; readonly generation: number }>();

  constructor(callers: Callers, loader: Loader) {
    this.#callers = callers;
    this.#loader = loader;
  }

  forget(): void {
    this.#known = new Map();
  }

  /** A remembered admission. */
  find(request: Presented): Admission | undefined {
    const known = this.#known.get(nameOf(request));
    if (known === undefined || known.generation !== this.#callers.generation) return undefined;
    return known.untilMs > performance.now() ? known.admission : undefined;
  }

  async admit(request: Presented): Promise<Admission> {
    // if a revocation or a change arrives meanwhile, the result goes into the map that it discarded, or is of an old generation
    const known = this.#known;
    const { generation } = this.#callers;
    const found = this.#callers.byAuthorization(request.authorization).then((caller) => ({ caller }));
    const identified = await within(admissionTimes.identifyMs, found);
    if (identified === undefined) throw new MillraceError('database_unavailable', 'the database does not answer');
    const { caller } = identified;
    const admission = { caller, tenantId: await this.#tenantOf(caller, request.tenant) };
    if (known.size >= maxRemembered) known.clear();
    // the credential of a task ends with its lease
    if (caller.kind === 'key')
      known.set(nameOf(request), { admission, untilMs: performance.now() + admissionTimes.rememberMs, generation });
    return admission;
  }

  async #tenantOf(caller: Caller, name: string | undefined): Promise<string> {
    if (name === undefined && caller.tenantId !== null) return caller.tenantId;
    const wanted = name ?? defaultTenant;
    const finding = caller.kind === 'task' ? this.#loader.findAlways(wanted) : this.#loader.find(wanted);
    const row = await finding.catch(unlessGone);
    rejectOtherTenant(caller, { id: row?.id, name: wanted });
    return (row ?? (await finding)).id;
  }
}

function nameOf({ authorization, tenant }: Presented): string {
  return tenant === undefined ? authorization : `${tenant}\n${authorization}`;
}
