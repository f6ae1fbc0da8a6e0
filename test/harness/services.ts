/**
 * Which real services a suite needs. Say it by literal name, once per suite: scripts/services.js reads it from the
 * source to know what to install.
 *
 *   describe.skipIf(!needs('chromium'))('the page', () => …)
 */
import { findService, installCommand, type ServiceName } from '../../scripts/services.js';

/** Whether the service is on this machine. Where it is not: a loud line, or with CI=true an error. */
export function needs(name: ServiceName): boolean {
  if (findService(name) !== undefined) return true;
  const sentence = `${name} is missing, and what needs it is skipped. This installs it: ${installCommand}`;
  if (process.env['CI'] === 'true') throw new Error(sentence);
  console.warn(`\nSKIPPED: ${sentence}\n`);
  return false;
}
