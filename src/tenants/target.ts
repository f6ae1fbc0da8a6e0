/** Where an upgrade goes that is not told where. */
import { newestFor } from '../kernel/text/version.ts';
import type { Life } from './life.ts';

/** Of the engines that are here and can be used; `from`: the version that the tenant is at, as far as it is known. */
export async function usualTarget(
  { engines }: Pick<Life, 'engines'>,
  from: string | null,
): Promise<string | undefined> {
  const usable = (await engines.list()).filter(({ fault }) => fault === null);
  return newestFor(
    from,
    usable.map(({ version }) => version),
  );
}
