/** The table of runtimes. README.md says how to add one. */
import type { Runtime, WorkKind } from './contract.ts';
import { dockerFactory } from './docker/runtime.ts';
import type { RuntimeFactory, RuntimeOptions } from './factory.ts';
import { functionFactory } from './function/runtime.ts';
import { httpFactory } from './http/runtime.ts';
import { noneFactory } from './none/runtime.ts';
import { processFactory } from './process/runtime.ts';

const factories: readonly RuntimeFactory[] = [noneFactory, functionFactory, processFactory, dockerFactory, httpFactory];

/** The runtimes for these kinds of work. Kinds that this worker cannot serve are left out. */
export function makeRuntimes(kinds: readonly WorkKind[], options: RuntimeOptions): Runtime[] {
  return factories
    .filter((factory) => serves(factory, kinds) && factory.missing?.(options) === undefined)
    .map((factory) => factory.make(options));
}

/** The kinds of work that this worker cannot serve, with the reasons. */
export function findMissing(
  kinds: readonly WorkKind[],
  options: Omit<RuntimeOptions, 'worker'>,
): { readonly kind: WorkKind; readonly reason: string }[] {
  return kinds.flatMap((kind) => {
    const reasons = factories.filter((each) => serves(each, [kind])).map((each) => each.missing?.(options));
    if (reasons.includes(undefined)) return [];
    return [{ kind, reason: reasons[0] ?? 'this release has no runtime for it; leave it out, or name others' }];
  });
}

function serves(factory: RuntimeFactory, kinds: readonly WorkKind[]): boolean {
  return factory.serves.some((kind) => kinds.includes(kind));
}
