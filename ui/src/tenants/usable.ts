/** The engines that a tenant can be brought to; the first is where an upgrade goes that is not told where. */
import type { Engine } from './use-tenants.ts';

/** The server lists the newest first. */
export function usable<E extends Pick<Engine, 'version' | 'fault'>>(engines: readonly E[] | undefined): readonly E[] {
  return (engines ?? []).filter(({ fault }) => fault === null);
}
