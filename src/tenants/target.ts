/** The default target version of an upgrade. */
import { newestFor } from '../kernel/text/version.ts';
import type { Life } from './life.ts';

/** Chooses among the usable engines. `from`: the tenant's version, null if unknown. */
export async function usualTarget(
  { engines }: { readonly engines: Pick<Life['engines'], 'list'> },
  from: string | null,
): Promise<string | undefined> {
  const usable = (await engines.list()).filter(({ fault }) => fault === null);
  return newestFor(
    from,
    usable.map(({ version }) => version),
  );
}
