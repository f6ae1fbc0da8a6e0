/**
 * deploy/kubernetes against Kubernetes' description of its objects, and against the product: what the manifests name exists. A cluster's
 * own server is not asked.
 */
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { readConfig } from '../../src/config.ts';
import { gatewayEndpoints } from '../../src/gateway/installation/endpoints.ts';
import { packageVersion } from '../../src/kernel/process/package-files.ts';
import { parseDuration } from '../../src/kernel/text/duration.ts';
import { faultsOfObject } from '../harness/deploy/kubernetes-schema.ts';
import { type KubernetesObject, renderKustomization } from '../harness/deploy/kustomize.ts';
import { faultsOfSettings, image, roleOf, textOf } from '../harness/deploy/settings.ts';

const folders = ['base', 'single', 'overlays/autoscaled-workers', 'overlays/external-postgres'];
const manifests = fileURLToPath(new URL('../../deploy/kubernetes', import.meta.url));
const render = (folder: string): KubernetesObject[] => renderKustomization(`${manifests}/${folder}`);

const labels = z.record(z.string(), z.string());
const probe = z.looseObject({
  httpGet: z.strictObject({ path: z.string(), port: z.string() }).optional(),
  tcpSocket: z.strictObject({ port: z.string() }).optional(),
});
const container = z.looseObject({
  name: z.string(),
  image: z.string(),
  args: z.array(z.string()),
  env: z.array(z.strictObject({ name: z.string(), value: z.string() })).default([]),
  envFrom: z.array(z.strictObject({ configMapRef: z.strictObject({ name: z.string() }) })).default([]),
  ports: z.array(z.strictObject({ name: z.string(), containerPort: z.number() })).default([]),
  startupProbe: probe.optional(),
  livenessProbe: probe.optional(),
  readinessProbe: probe.optional(),
  volumeMounts: z.array(z.looseObject({ name: z.string(), mountPath: z.string() })),
});
const secretVolume = z.looseObject({
  secretName: z.string(),
  items: z.array(z.strictObject({ key: z.string(), path: z.string() })).optional(),
});
const volume = z.looseObject({ name: z.string(), secret: secretVolume.optional() });
const workload = z.looseObject({
  metadata: z.looseObject({ name: z.string() }),
  spec: z.looseObject({
    selector: z.strictObject({ matchLabels: labels }),
    template: z.strictObject({
      metadata: z.strictObject({ labels }),
      spec: z.looseObject({
        serviceAccountName: z.string(),
        terminationGracePeriodSeconds: z.number(),
        containers: z.array(container).length(1),
        volumes: z.array(volume),
      }),
    }),
    volumeClaimTemplates: z.array(z.looseObject({ metadata: z.looseObject({ name: z.string() }) })).default([]),
  }),
});
type Workload = z.output<typeof workload>;

function workloadsOf(objects: readonly KubernetesObject[]): Workload[] {
  return objects.filter(({ kind }) => ['Deployment', 'StatefulSet'].includes(kind)).map((each) => workload.parse(each));
}

function onlyContainer({ spec }: Workload): z.output<typeof container> {
  const [only] = spec.template.spec.containers;
  if (only === undefined) throw new Error('a pod without a container');
  return only;
}

/** With the values of its ConfigMaps. */
function environmentOf(each: Workload, objects: readonly KubernetesObject[]): Record<string, string> {
  const { env, envFrom } = onlyContainer(each);
  const shared = envFrom.map(({ configMapRef: { name } }) => {
    const map = objects.find(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === name);
    return labels.parse(map?.['data']);
  });
  return Object.assign({}, ...shared, Object.fromEntries(env.map(({ name, value }) => [name, value])));
}

describe.each(folders)('deploy/kubernetes/%s', (folder) => {
  const objects = render(folder);
  const workloads = workloadsOf(objects);

  it('fits the description of Kubernetes 1.35, and names each object once', () => {
    expect(objects.flatMap(faultsOfObject)).toEqual([]);
    const names = objects.map(({ kind, metadata }) => `${kind} ${metadata.name}`);
    expect(names).toEqual([...new Set(names)]);
    const outside = objects.filter(({ kind, metadata }) => kind !== 'Namespace' && metadata.namespace !== 'millrace');
    expect(outside).toEqual([]);
  });

  it('starts roles that exist, of this release, with settings that they accept', async () => {
    expect(workloads.length).toBeGreaterThan(0);
    for (const each of workloads) {
      const { args, image: tag } = onlyContainer(each);
      const env = environmentOf(each, objects);
      expect([tag, image.version]).toEqual([`millrace:${packageVersion}`, packageVersion]);
      expect(faultsOfSettings(env)).toEqual([]);
      // the key is in a file of the cluster
      const url = env['MILLRACE_URL'];
      const started = await roleOf(args, url === undefined ? {} : { MILLRACE_URL: url, MILLRACE_KEY: 'mrk_any' });
      expect(started?.role).toBe(args[0]);
    }
  });

  it('has probes that ask endpoints for which no key is needed, at the port of the product', () => {
    const { port } = readConfig({});
    for (const each of workloads) {
      const { startupProbe, livenessProbe, readinessProbe, ports } = onlyContainer(each);
      for (const { httpGet, tcpSocket } of [startupProbe, livenessProbe, readinessProbe].filter(
        (is) => is !== undefined,
      )) {
        const named = ports.find(({ name }) => name === (httpGet ?? tcpSocket)?.port);
        expect(named?.containerPort).toBe(port);
        if (httpGet === undefined) continue;
        const endpoint = Object.entries(gatewayEndpoints).find(([key]) => key === `GET ${httpGet.path}`)?.[1];
        expect(endpoint?.tag).toBe('health');
      }
    }
  });

  it('selects pods that exist', () => {
    const podLabels = workloads.map(({ spec }) => spec.template.metadata.labels);
    const selects = (wanted: Record<string, string>): boolean =>
      podLabels.some((given) => Object.entries(wanted).every(([name, value]) => given[name] === value));
    for (const { spec } of workloads) expect(spec.template.metadata.labels).toMatchObject(spec.selector.matchLabels);
    const selectors = objects.flatMap(({ kind, spec }) => selectorsIn(kind, spec));
    expect(selectors.filter((selector) => !selects(selector))).toEqual([]);
    const components = podLabels.map((given) => given['app.kubernetes.io/component']);
    expect(components).toEqual([...new Set(components)]);
    for (const { scaleTargetRef: target } of objects.flatMap(({ kind, spec }) => autoscalerIn(kind, spec))) {
      const scaled = objects.find(({ kind, metadata }) => kind === target.kind && metadata.name === target.name);
      expect(scaled).toMatchObject({ apiVersion: target.apiVersion, spec: { template: expect.anything() as unknown } });
      expect(scaled?.['spec']).not.toHaveProperty('replicas');
    }
  });

  it('mounts each volume, and finds each file of a setting in a secret that docs/kubernetes.md makes', () => {
    const page = textOf('docs/kubernetes.md');
    for (const each of workloads) {
      const { volumeMounts } = onlyContainer(each);
      const { volumes } = each.spec.template.spec;
      const claimed = each.spec.volumeClaimTemplates.map(({ metadata }) => metadata.name);
      const present = [...volumes.map(({ name }) => name), ...claimed].toSorted();
      expect(volumeMounts.map(({ name }) => name).toSorted()).toEqual(present);
      const files = volumes.flatMap(({ name, secret }) => {
        const folderOf = volumeMounts.find((mount) => mount.name === name)?.mountPath;
        if (secret === undefined) return [];
        const made = keysOnPage(page, secret.secretName);
        const items = secret.items ?? made.map((key) => ({ key, path: key }));
        expect(made).toEqual(expect.arrayContaining(items.map(({ key }) => key)));
        return items.map(({ path }) => `${folderOf}/${path}`);
      });
      const wanted = Object.entries(environmentOf(each, objects)).filter(([name]) => name.endsWith('_FILE'));
      expect(files).toEqual(expect.arrayContaining(wanted.map(([, path]) => path)));
    }
  });

  it('runs as the user of the image with no rights, and may write only where the image does', () => {
    const accounts = objects.filter(({ kind }) => kind === 'ServiceAccount');
    for (const each of workloads) {
      const { spec } = each.spec.template;
      const { user } = image;
      expect(spec).toMatchObject({
        securityContext: {
          runAsNonRoot: true,
          runAsUser: user,
          runAsGroup: user,
          fsGroup: user,
          seccompProfile: { type: 'RuntimeDefault' },
        },
        automountServiceAccountToken: false,
        // Kubernetes would set MILLRACE_PORT to an address of the service
        enableServiceLinks: false,
      });
      expect(accounts.map(({ metadata }) => metadata.name)).toContain(spec.serviceAccountName);
      expect(onlyContainer(each)['securityContext']).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      });
      const paths = onlyContainer(each).volumeMounts.map(({ mountPath }) => mountPath);
      expect(paths).toEqual(expect.arrayContaining(['/tmp', image.volume]));
      // a volume of the cluster belongs to root, so the home is below its top
      expect(image.env.MILLRACE_HOME).toMatch(new RegExp(`^${image.volume}/.`));
    }
  });

  it('gives each role the time that it takes to end', () => {
    for (const each of workloads) {
      const drain = parseDuration(environmentOf(each, objects)['MILLRACE_DRAIN'] ?? '5s');
      const needed = drain.ok ? drain.ms / 1_000 + 10 : Number.NaN;
      expect(each.spec.template.spec.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(needed);
    }
  });
});

function selectorsIn(kind: string, spec: unknown): Record<string, string>[] {
  const match = z.looseObject({ matchLabels: labels });
  if (kind === 'Service') return [z.looseObject({ selector: labels }).parse(spec).selector];
  if (kind === 'PodDisruptionBudget') return [z.looseObject({ selector: match }).parse(spec).selector.matchLabels];
  if (kind === 'NetworkPolicy') return [z.looseObject({ podSelector: match }).parse(spec).podSelector.matchLabels];
  return [];
}

function autoscalerIn(kind: string, spec: unknown) {
  const target = z.strictObject({ apiVersion: z.string(), kind: z.string(), name: z.string() });
  return kind === 'HorizontalPodAutoscaler' ? [z.looseObject({ scaleTargetRef: target }).parse(spec)] : [];
}

/** The keys of `kubectl create secret generic NAME --from-file=KEY=…` on the page. */
function keysOnPage(page: string, secret: string): string[] {
  const command = new RegExp(`create secret generic ${secret} ((?:.*\\\\\\n)*.*)$`, 'm').exec(page)?.[1] ?? '';
  return [...command.matchAll(/--from-(?:file|literal)=([\w-]+)=/g)].map(([, key = '']) => key);
}

it('the description of Kubernetes finds unknown and missing fields, and wrong types', () => {
  const spec = { selector: {}, template: { spec: { containers: [{ image: 'x', ports: [{ containerPort: '80' }] }] } } };
  const object = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { nam: 'x' }, spec };
  const at = 'Deployment.spec.template.spec.containers[0]';
  expect(faultsOfObject(object)).toEqual([
    'Deployment.metadata.nam: unknown field',
    `${at}.name: is missing`,
    `${at}.ports[0].containerPort: must be integer, is "80"`,
  ]);
  expect(faultsOfObject({ apiVersion: 'v1', kind: 'Deployment' })).toEqual(['v1/Deployment: unknown kind']);
});
