/** What axe finds wrong with a page: only what is serious or worse, each with the elements it is about. */
import axe, { type AxeResults } from 'axe-core';
import type { Page } from 'playwright-core';

export async function seriousFaults(page: Page): Promise<string[]> {
  // evaluated, not added as a script: the page's own policy would refuse that
  await page.evaluate(axe.source);
  const violations = await page.evaluate(async () => {
    const { axe: checker } = globalThis as unknown as { axe: { run(): Promise<AxeResults> } };
    return (await checker.run()).violations.map(({ id, impact, nodes }) => ({
      id,
      impact,
      targets: nodes.slice(0, 3).map(({ target }) => target.join(' ')),
    }));
  });
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, impact, targets }) => `${id} (${impact}): ${targets.join('; ')}`);
}
