/**
 * Where the Docker engine is: a socket, or an address with or without TLS, as `DOCKER_HOST` names it. Millrace's own settings
 * take precedence over the variables of the docker command.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

interface TlsFiles {
  readonly ca?: Buffer;
  readonly cert?: Buffer;
  readonly key?: Buffer;
}

export type EngineAddress =
  | { readonly socketPath: string }
  | { readonly host: string; readonly port: number; readonly tls?: TlsFiles };

type Environment = Readonly<Record<string, string | undefined>>;

/** Millrace's own settings. */
export interface EngineSettings {
  readonly host?: string | undefined;
  /** The folder with the certificates. */
  readonly certs?: string | undefined;
}

/** The variables of the docker command. */
export const dockerVariables = ['DOCKER_HOST', 'DOCKER_TLS_VERIFY', 'DOCKER_CERT_PATH'] as const;

const usualSocket = '/var/run/docker.sock';

/** Throws an error for users if the address is not valid, or a certificate cannot be read. */
export function findEngine({ host, certs }: EngineSettings, environment: Environment): EngineAddress {
  const text = host ?? filled(environment['DOCKER_HOST']) ?? `unix://${usualSocket}`;
  if (text.startsWith('unix://')) return { socketPath: text.slice('unix://'.length) };
  if (text.startsWith('/')) return { socketPath: text };
  const variable = host === undefined ? 'DOCKER_HOST' : 'MILLRACE_DOCKER_HOST';
  return parseRemote(text, variable, certs ?? findCertificates(environment));
}

function parseRemote(text: string, variable: string, folder: string | undefined): EngineAddress {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^(tcp|https?):$/.test(url.protocol) || url.hostname === '')
    throw new Error(`${variable}: "${text}" is not an address; write unix:///var/run/docker.sock or tcp://HOST:2376`);
  const secure = url.protocol === 'https:' || folder !== undefined;
  const port = url.port === '' ? (secure ? 2376 : 2375) : Number(url.port);
  // WHATWG URLs keep the brackets of IPv6 addresses
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
  return { host, port, ...(secure ? { tls: folder === undefined ? {} : readCertificates(folder) } : {}) };
}

function findCertificates(environment: Environment): string | undefined {
  return filled(environment['DOCKER_TLS_VERIFY']) === undefined ? undefined : filled(environment['DOCKER_CERT_PATH']);
}

/** The file names are those of the docker command. */
function readCertificates(folder: string): TlsFiles {
  return {
    ca: readFileSync(join(folder, 'ca.pem')),
    cert: readFileSync(join(folder, 'cert.pem')),
    key: readFileSync(join(folder, 'key.pem')),
  };
}

export function formatAddress(address: EngineAddress): string {
  return 'socketPath' in address ? address.socketPath : `${address.host}:${address.port}`;
}

function filled(text: string | undefined): string | undefined {
  return text === '' ? undefined : text;
}
