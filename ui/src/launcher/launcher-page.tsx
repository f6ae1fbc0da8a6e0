/** The active launcher, launchers on standby, and the hosts that run schedulers. */
import { Answer } from '../kit/answer.tsx';
import { Command } from '../kit/command.tsx';
import { Empty } from '../kit/empty.tsx';
import { Fact, Facts } from '../kit/facts.tsx';
import { useTitle } from '../kit/title.ts';
import { RootOnly } from '../session/root-only.tsx';
import { formatBytes } from '../time/format.ts';
import { Age } from '../time/times.tsx';
import { ProcessName } from '../tenants/process-name.tsx';
import { TenantsHead } from '../tenants/tenants-head.tsx';
import '../tenants/tenants.css';
import { type Launcher, useLauncher } from '../tenants/use-tenants.ts';

export default function LauncherPage() {
  return (
    <RootOnly>
      <LauncherBody />
    </RootOnly>
  );
}

function LauncherBody() {
  useTitle('Launcher and hosts');
  const launcher = useLauncher();
  return (
    <>
      <TenantsHead title="Launcher and hosts" />
      <Answer of={launcher} what="Reading the launcher">
        {(data) => (
          <>
            <section className="tenant-part" aria-labelledby="launchers">
              <h2 id="launchers">Launcher</h2>
              {data.active === null ? <NoLauncher /> : <Active launcher={data.active} />}
              <StandingBy processes={data.standing_by} />
            </section>
            <section className="tenant-part" aria-labelledby="hosts">
              <h2 id="hosts">Hosts</h2>
              {data.hosts.length === 0 ? (
                <p className="muted">None. The launcher starts one when a tenant is to run.</p>
              ) : (
                <HostsTable hosts={data.hosts} />
              )}
            </section>
          </>
        )}
      </Answer>
    </>
  );
}

function Active({ launcher }: { readonly launcher: NonNullable<Launcher['active']> }) {
  return (
    <Facts>
      <Fact term="Active">
        <ProcessName of={launcher} />
      </Fact>
      <Fact term="Started">
        <Age at={launcher.started_at} />
      </Fact>
      <Fact term="Epoch">{launcher.epoch}</Fact>
    </Facts>
  );
}

function NoLauncher() {
  return (
    <Empty title="No launcher is active">
      <p>
        Schedulers that run go on, but none is started, stopped or moved, and messages wait. Start one with{' '}
        <Command>millrace launcher</Command>, or everything with <Command>millrace up</Command>.
      </p>
    </Empty>
  );
}

function StandingBy({ processes }: { readonly processes: Launcher['standing_by'] }) {
  if (processes.length === 0) {
    return <p className="muted">None stands by. A second one would take over within seconds.</p>;
  }
  return (
    <p className="standing-by">
      <span className="muted">Standing by:</span>
      {processes.map((process) => (
        <ProcessName key={process.id} of={process} />
      ))}
    </p>
  );
}

function HostsTable({ hosts }: Pick<Launcher, 'hosts'>) {
  return (
    <table className="table">
      <thead>
        <tr>
          <th scope="col">Host</th>
          <th scope="col">Engine</th>
          <th scope="col" className="number">
            Tenants
          </th>
          <th scope="col" className="number">
            Memory
          </th>
          <th scope="col" className="wide">
            Started
          </th>
          <th scope="col">Last beat</th>
        </tr>
      </thead>
      <tbody>
        {hosts.map((host) => (
          <tr key={host.id}>
            <th scope="row">
              <ProcessName of={host} />
            </th>
            <td>{host.engine}</td>
            <td className="number">{host.tenants}</td>
            <td className="number">{host.memory === 0 ? '–' : formatBytes(host.memory)}</td>
            <td className="wide muted">
              <Age at={host.started_at} />
            </td>
            <td className="muted">{host.beat_at === null ? 'it has ended' : <Age at={host.beat_at} />}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
