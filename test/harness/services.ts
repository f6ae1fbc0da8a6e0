/**
 * Declares the real services that a suite needs. Call `needs` with a literal name, once per suite: scripts/services.js
 * reads the names from the source to know what to install.
 *
 *   describe.skipIf(!needs('chromium'))('the page', () => …)
 */
import { findService, installCommand, type ServiceName } from '../../scripts/services.js';

/** Whether the service is installed. If not, prints a warning, or throws with CI=true. */
export function needs(name: ServiceName): boolean {
  if (findService(name) !== undefined) return true;
  const sentence = `${name} is missing, so the tests that need it are skipped. Install it with: ${installCommand}`;
  if (process.env['CI'] === 'true') throw new Error(sentence);
  console.warn(`\nSKIPPED: ${sentence}\n`);
  return false;
}
