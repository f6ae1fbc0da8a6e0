/** A real Chromium, headless, with nothing of its own to say to the outside. */
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
  if (executablePath === undefined) throw new Error('there is no Chromium here');
  return chromium.launch({ executablePath, args: quiet, headless: true });
}
