/** Types of services.js: the harness is TypeScript and compiled without reading JavaScript. */
export type ServiceName =
  | 'chromium'
  | 'postgresql'
  | 'redis'
  | 'rabbitmq'
  | 'docker'
  | 'podman'
  | 'registry'
  | 'busybox'
  | 'systemd'
  | 'netns';
export declare const installCommand: string;
export declare function findService(name: ServiceName): string | undefined;
export declare function neededServices(filters?: readonly string[]): Map<ServiceName, string[]>;
export declare function installServices(names: Iterable<ServiceName>): Promise<ServiceName[]>;
