/** Accessibility faults of a page that axe rates serious or critical, each with its elements. */
import axe, { type AxeResults } from 'axe-core';
import type { Page } from 'playwright-core';

export async function seriousFaults(page: Page): Promise<string[]> {
  // evaluated rather than added as a script, which the page's content security policy would block
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

/** Of a page that follows the colours that the system prefers. */
export async function faultsByDayAndNight(page: Page): Promise<string[]> {
  const faults: string[] = [];
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    faults.push(...(await seriousFaults(page)).map((fault) => `${colorScheme}: ${fault}`));
  }
  return faults;
}
