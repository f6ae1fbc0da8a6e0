/** The versions of a flow, and the difference between two of them (`?from=&to=`). */
import { Link } from 'wouter';
import DocumentDiff from '../document/document-diff.tsx';
import '../job/versions/versions.css';
import { Choice } from '../kit/choice.tsx';
import { Failure } from '../kit/failure.tsx';
import { SelectField } from '../kit/field.tsx';
import { Loading } from '../kit/loading.tsx';
import { useUrlState } from '../kit/url-state.ts';
import { useMayOperate } from '../session/session.ts';
import { Age } from '../time/times.tsx';
import { type Flow, flowHref, useFlowVersion, type FlowViewProps } from './use-flows.ts';

interface Compared {
  /** 0: before there was anything. */
  readonly from: number;
  readonly to: number;
}

/** Default: the changes of the newest version. */
function useCompared(newest: number): Compared {
  const [toText] = useUrlState('to');
  const [fromText] = useUrlState('from');
  const to = numberOf(toText) ?? newest;
  return { from: numberOf(fromText) ?? to - 1, to };
}

function numberOf(text: string): number | undefined {
  return /^\d{1,9}$/.test(text) ? Number(text) : undefined;
}

export default function FlowVersionsView({ flow }: FlowViewProps) {
  const compared = useCompared(flow.version);
  return (
    <div className="versions">
      <VersionTable flow={flow} compared={compared} />
      <Comparison flow={flow} compared={compared} />
    </div>
  );
}

interface Props {
  readonly flow: Flow;
  readonly compared: Compared;
}

function VersionTable({ flow: { name, versions }, compared }: Props) {
  return (
    <section aria-label="Versions">
      <table className="table">
        <thead>
          <tr>
            <th scope="col">Version</th>
            <th scope="col">Written</th>
            <th scope="col">By</th>
          </tr>
        </thead>
        <tbody>
          {versions.map(({ version, at, actor }) => (
            <tr key={version} data-compared={version === compared.to || version === compared.from ? '' : undefined}>
              <th scope="row">
                <Link
                  href={flowHref(name, `/versions?from=${version - 1}&to=${version}`)}
                  aria-current={version === compared.to ? 'true' : undefined}
                >
                  {version}
                </Link>
              </th>
              <td>
                <Age at={at} />
              </td>
              <td className="version-actor">{actor}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

const layouts = [
  { value: 'unified', label: 'One column' },
  { value: 'side', label: 'Side by side' },
] as const;

function Comparison({ flow, compared: { from, to } }: Props) {
  const mayOperate = useMayOperate();
  const [layout, setLayout] = useUrlState('layout', 'unified');
  const [before, after] = [useFlowVersion(flow.name, from), useFlowVersion(flow.name, to)];
  const error = before.error ?? after.error;
  const isReady = (from === 0 || before.data !== undefined) && after.data !== undefined;
  return (
    <section aria-label="Comparison" className="comparison">
      <div className="comparison-head">
        <VersionField label="From" name="from" value={from} flow={flow} />
        <VersionField label="To" name="to" value={to} flow={flow} />
        <Choice label="Layout" options={layouts} value={layout} change={setLayout} />
        {mayOperate && to !== flow.version && after.data !== undefined ? (
          <Link href={flowHref(flow.name, `/definition?restore=${to}`)} className="button">
            Restore version {to}
          </Link>
        ) : null}
      </div>
      {error !== null ? (
        <Failure error={error} />
      ) : isReady ? (
        <DocumentDiff before={before.data?.document} after={after.data?.document} isSideBySide={layout === 'side'} />
      ) : (
        <Loading what="Reading the two versions" />
      )}
    </section>
  );
}

interface FieldProps {
  readonly label: string;
  readonly name: 'from' | 'to';
  readonly value: number;
  readonly flow: Flow;
}

function VersionField({ label, name, value, flow: { versions } }: FieldProps) {
  const [, set] = useUrlState(name);
  const numbers = new Set([...versions.map(({ version }) => version), value, ...(name === 'from' ? [0] : [])]);
  const options = [...numbers]
    .toSorted((a, b) => b - a)
    .map((version) => ({ value: String(version), label: version === 0 ? 'nothing' : `version ${version}` }));
  return <SelectField label={label} value={String(value)} options={options} change={set} />;
}
