/** Opens the installation for a conductor that is part of the user's program. */
import { type HostedFunctionMap, inProcessFunctions } from '../../conductor/functions/in-process.ts';
import { readConfig } from '../../config.ts';
import { makeLog } from '../../kernel/log.ts';
import type { Service } from '../../kernel/service.ts';
import { apiUrlOf } from './conductor-role.ts';
import { conductorService } from './conductor-service.ts';
import { externalAddress, openExternal, readSecretKeys } from '../open-installation.ts';
import { prepareControl } from '../prepare-databases.ts';

export interface CreateConductorOptions {
  /** The control database: `postgres://…`. */
  readonly databaseUrl: string;
  /** By the name of the task in flows. */
  readonly functions: HostedFunctionMap;
  /** The key of the installation that encrypts values; default: `MILLRACE_SECRET_KEY`, or the file `secret-key` in the home. */
  readonly secretKey?: string;
  /** The folder of this installation; default: `MILLRACE_HOME`, or `.millrace`. */
  readonly home?: string;
  /** How people reach the API, for links that answer tasks; default: `MILLRACE_PUBLIC_URL`. */
  readonly publicUrl?: string;
  /** Functions that are called at once; default: 1,000. */
  readonly maxCalls?: number;
  /** A level of pino; default: `warn`. */
  readonly logLevel?: string;
}

const usualMaxCalls = 1_000;

export interface OpenedConductor {
  readonly conductor: Service;
  close(): Promise<void>;
}

export async function openConductor(options: CreateConductorOptions, signal: AbortSignal): Promise<OpenedConductor> {
  const { databaseUrl, functions, secretKey, home, publicUrl, maxCalls = usualMaxCalls, logLevel = 'warn' } = options;
  const config = readConfig({
    ...process.env,
    MILLRACE_DATABASE_URL: databaseUrl,
    MILLRACE_LOG: logLevel,
    ...(secretKey !== undefined && { MILLRACE_SECRET_KEY: secretKey }),
    ...(home !== undefined && { MILLRACE_HOME: home }),
    ...(publicUrl !== undefined && { MILLRACE_PUBLIC_URL: publicUrl }),
  });
  const log = makeLog({ level: config.logLevel, role: 'conductor' });
  const secretKeys = await readSecretKeys(config);
  await prepareControl(externalAddress(config));
  const installation = await openExternal(config, log, { role: 'conductor', secretKeys });
  const hosted = inProcessFunctions(functions, log);
  const apiUrl = (): string => apiUrlOf(config);
  const parts = { installation, functions: hosted, maxCalls, apiUrl, isAlone: true, signal };
  return { conductor: conductorService(parts), close: () => installation.close() };
}
