/** Jobs of an invented company that look real: a shop, a data warehouse, billing, operations. */

const start = '2026-01-01T00:00:00Z';
const every = (period: string) => [{ name: `every ${period}`, start, period, catchup: 'none' }];
const cron = (name: string, text: string, timezone?: string) => [
  { name, start, cron: text, catchup: 'none', ...(timezone === undefined ? {} : { timezone }) },
];

/** A task that prints lines and takes a while. */
function printAndSleep(seconds: number, ...lines: readonly string[]) {
  const script = lines.map((line) => `printf '%b\\n' '${line}'`).join('; ');
  return { process: { command: ['sh', '-c', `${script}; sleep ${seconds}`] } };
}

const green = (text: string) => `\\033[32m${text}\\033[0m`;
const red = (text: string) => `\\033[31m${text}\\033[0m`;
const dim = (text: string) => `\\033[2m${text}\\033[0m`;

const sources = ['orders', 'customers', 'payments', 'shipments', 'returns', 'catalogue', 'clicks', 'support'];
const marts = ['sales', 'margin', 'churn', 'stock', 'delivery', 'campaigns', 'refunds', 'cohorts'];

export const projects = [
  { name: 'shop', description: 'What customers see: prices, stock, reports' },
  {
    name: 'warehouse',
    description: 'All data in one place, every hour',
    config: { region: 'eu-central', bucket: 'lake' },
  },
  { name: 'billing', description: 'Invoices, payments, reminders' },
  { name: 'ops', description: 'Backups, certificates, cleaning up' },
] as const;

const shop = [
  {
    project: 'shop',
    name: 'nightly report',
    description: 'What was sold yesterday, in everybody’s inbox before breakfast',
    triggers: cron('at two', '0 2 * * *', 'Europe/Berlin'),
    params: { recipients: 'sales@example.com', currency: 'EUR' },
    tasks: [
      {
        name: 'export orders',
        depends: ['trigger/at two'],
        ...printAndSleep(2, dim('connecting'), 'read 48213 orders'),
      },
      { name: 'export customers', depends: ['trigger/at two'], ...printAndSleep(1, 'read 9120 customers') },
      {
        name: 'join',
        depends: ['task/export orders', 'task/export customers'],
        retry: { max_attempts: 3, delay: '1m' },
        ...printAndSleep(2, 'joining', green('48213 rows, 0 orphans')),
      },
      { name: 'render', depends: ['task/join'], ...printAndSleep(1, 'wrote report.pdf') },
      { name: 'mail', depends: ['task/render'], ...printAndSleep(1, 'sent to {{params.recipients}}') },
      {
        name: 'alert',
        depends_failure: ['task/join', 'task/render'],
        ...printAndSleep(0, red('told whoever is on call')),
      },
      { name: 'clean up', depends_done: ['task/mail'], ...printAndSleep(0, 'removed 3 files') },
    ],
  },
  {
    project: 'shop',
    name: 'stock sync',
    description: 'Stock of all shops, every five minutes',
    triggers: every('5m'),
    tasks: [
      { name: 'fetch', depends: ['trigger/every 5m'], ...printAndSleep(1, '14 shops answered') },
      { name: 'reconcile', depends: ['task/fetch'], ...printAndSleep(1, 'moved 27 items') },
      { name: 'publish', depends: ['task/reconcile'], ...printAndSleep(0, 'published') },
    ],
  },
  {
    project: 'shop',
    name: 'price feed',
    description: 'Prices for the comparison sites',
    triggers: every('15m'),
    tasks: [
      { name: 'collect', depends: ['trigger/every 15m'], ...printAndSleep(1, 'collected 12480 prices') },
      {
        name: 'parse',
        depends: ['task/collect'],
        process: { command: ['sh', '-c', 'echo parsing; echo "line 8121: price is not a number" >&2; exit 2'] },
      },
      { name: 'upload', depends: ['task/parse'], ...printAndSleep(1, 'uploaded') },
    ],
  },
];

const warehouse = [
  {
    project: 'warehouse',
    name: 'ingest',
    description: 'Every source into the lake, then checked and published',
    triggers: every('1h'),
    max_active_instants: 2,
    tasks: [
      ...sources.map((source) => ({
        name: `extract ${source}`,
        depends: ['trigger/every 1h'],
        pool: 'lake',
        ...printAndSleep(3, `extracting ${source}`, green('done')),
      })),
      ...sources.map((source) => ({
        name: `load ${source}`,
        depends: [`task/extract ${source}`],
        ...printAndSleep(2, `loading ${source}`),
      })),
      {
        name: 'check',
        depends: sources.map((source) => `task/load ${source}`),
        ...printAndSleep(1, '0 of 214 checks failed'),
      },
      { name: 'publish', depends: ['task/check'], ...printAndSleep(1, 'published') },
      { name: 'quarantine', depends_failure: ['task/check'], ...printAndSleep(0, 'moved to quarantine') },
    ],
  },
  {
    project: 'warehouse',
    name: 'marts',
    description: 'Tables for the analysts, once the lake is fresh',
    tasks: [
      { name: 'refresh dimensions', depends: ['ingest/task/publish'], ...printAndSleep(2, 'refreshed 31 dimensions') },
      ...marts.flatMap((mart) => [
        { name: `${mart} facts`, depends: ['task/refresh dimensions'], ...printAndSleep(2, `facts of ${mart}`) },
        { name: `${mart} sums`, depends: [`task/${mart} facts`], ...printAndSleep(1, `sums of ${mart}`) },
        { name: `${mart} tests`, depends: [`task/${mart} sums`], ...printAndSleep(1, green('all tests pass')) },
      ]),
      { name: 'release', depends: marts.map((mart) => `task/${mart} tests`), ...printAndSleep(1, 'released') },
    ],
  },
  {
    project: 'warehouse',
    name: 'train recommender',
    description: 'Needs the big machine, which is away for repair',
    triggers: cron('on sunday', '0 4 * * 0'),
    tasks: [
      { name: 'prepare', depends: ['trigger/on sunday'], ...printAndSleep(1, 'prepared') },
      { name: 'train', depends: ['task/prepare'], queue: 'gpu', ...printAndSleep(1, 'trained') },
    ],
  },
];

const rest = [
  {
    project: 'billing',
    name: 'payments',
    description: 'Payments from the bank, every minute',
    triggers: every('1m'),
    tasks: [
      { name: 'fetch', depends: ['trigger/every 1m'], ...printAndSleep(1, 'fetched 11 payments') },
      { name: 'book', depends: ['task/fetch'], ...printAndSleep(1, 'booked 11 payments') },
    ],
  },
  {
    project: 'billing',
    name: 'invoices',
    description: 'On the first of every month',
    paused: true,
    triggers: cron('monthly', '0 5 1 * *', 'Europe/Berlin'),
    tasks: [
      { name: 'collect', depends: ['trigger/monthly'], ...printAndSleep(1, 'collected') },
      { name: 'print', depends: ['task/collect'], ...printAndSleep(1, 'printed') },
    ],
  },
  {
    project: 'billing',
    name: 'reminders',
    description: 'Friendly first, then less so',
    triggers: cron('on workdays', '30 8 * * 1-5', 'Europe/Berlin'),
    tasks: [{ name: 'send', depends: ['trigger/on workdays'], ...printAndSleep(1, 'sent 14 reminders') }],
  },
  {
    project: 'ops',
    name: 'backup',
    description: 'Every night, and once a week we try to restore it',
    triggers: cron('at three', '0 3 * * *'),
    tasks: [
      { name: 'dump', depends: ['trigger/at three'], ...printAndSleep(2, 'dumped 41 GB') },
      { name: 'upload', depends: ['task/dump'], ...printAndSleep(2, 'uploaded') },
      { name: 'verify', depends: ['task/upload'], ...printAndSleep(1, green('verified')) },
    ],
  },
  {
    project: 'ops',
    name: 'certificates',
    description: 'Renewed when less than thirty days are left',
    triggers: cron('daily', '15 6 * * *'),
    tasks: [{ name: 'renew', depends: ['trigger/daily'], ...printAndSleep(1, 'nothing to renew') }],
  },
  {
    project: 'ops',
    name: 'sweep',
    description: 'Temporary files, every ten minutes',
    triggers: every('10m'),
    tasks: [{ name: 'sweep', depends: ['trigger/every 10m'], ...printAndSleep(1, 'removed 120 files') }],
  },
];

export const documents: readonly { readonly project: string; readonly name: string }[] = [
  ...shop,
  ...warehouse,
  ...rest,
];
