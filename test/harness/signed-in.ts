/** Pages of the web interface in a signed-in browser, with all their errors collected. */
import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core';
import type { Product } from './product.ts';

export interface SignedIn {
  readonly context: BrowserContext;
  /** Errors that pages logged to their console or threw. */
  readonly faults: string[];
  readonly open: (path: string) => Promise<Page>;
}

export async function signIn(
  browser: Browser,
  product: Product,
  key: string,
  options: BrowserContextOptions = {},
): Promise<SignedIn> {
  const context = await browser.newContext(options);
  const answer = await context.request.post(`${product.url}/api/session`, {
    data: { key },
    headers: { origin: product.url },
  });
  if (answer.status() !== 201) throw new Error(`signing in failed with status ${answer.status()}`);
  const faults: string[] = [];
  const open = async (path: string): Promise<Page> => {
    const page = await context.newPage();
    page.on('pageerror', (error) => faults.push(error.message));
    page.on('console', (message) => message.type() === 'error' && faults.push(message.text()));
    await page.goto(product.url + path);
    return page;
  };
  return { context, faults, open };
}
