/** A real headless Chromium that sends no requests of its own. */
import { type Browser, chromium } from 'playwright-core';
import { findService } from '../../scripts/services.js';

const quiet = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

export function startBrowser(): Promise<Browser> {
  const executablePath = findService('chromium');
  if (executablePath === undefined) throw new Error('Chromium is not installed');
  return chromium.launch({ executablePath, args: quiet, headless: true });
}
