/** The engines that a tenant can be upgraded to, and the default one. */
import type { Engine } from './use-tenants.ts';

type Known = Pick<Engine, 'version' | 'fault'>;

/** The server lists the newest first. */
export function usable<E extends Known>(engines: readonly E[] | undefined): readonly E[] {
  return (engines ?? []).filter(({ fault }) => fault === null);
}

/** The choice of `millrace tenant upgrade` without `--to`: a pre-release only from a pre-release, or if there is no other. */
export function usualTarget(from: string | null, engines: readonly Known[] | undefined): string | undefined {
  const newestFirst = usable(engines).map(({ version }) => version);
  const stable = newestFirst.find((version) => !isPreRelease(version));
  return from !== null && isPreRelease(from) ? newestFirst[0] : (stable ?? newestFirst[0]);
}

/** Whether there is an engine to upgrade to, pre-releases included. If the tenant's own engine is missing, any engine counts. */
export function hasNewer(from: string | null, engines: readonly Known[] | undefined): boolean {
  if (from === null || engines === undefined) return false;
  const own = engines.findIndex(({ version }) => version === from);
  return usable(own < 0 ? engines : engines.slice(0, own)).length > 0;
}

/** The part after a plus names a build. */
function isPreRelease(version: string): boolean {
  return /^[^+]*-/.test(version);
}
