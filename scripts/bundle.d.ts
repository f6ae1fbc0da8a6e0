/** Types of bundle.js: the harness is TypeScript and compiled without reading JavaScript. */
import type { Plugin } from 'rolldown';

export declare function bundle(
  entries: Readonly<Record<string, string>>,
  to: string,
  plugins?: readonly Plugin[],
): Promise<void>;
