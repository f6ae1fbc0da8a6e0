/** The inbox: tasks of people that wait for an answer. The address has whose (`?show=`, `?team=`) and the open one (`?item=`). */
import { useCallback } from 'react';
import { useSearchParams } from 'wouter';
import { FlowsHead } from '../flows/flows-head.tsx';
import { Answer } from '../kit/answer.tsx';
import { Choice } from '../kit/choice.tsx';
import { Empty } from '../kit/empty.tsx';
import { SelectField } from '../kit/field.tsx';
import { useTitle } from '../kit/title.ts';
import { withChanges } from '../kit/url-state.ts';
import { type ListedWorkitem, useWorkitems, type WorkitemFilter } from './use-workitems.ts';
import { WorkitemPanel } from './workitem-panel.tsx';
import { WorkitemsTable } from './workitems-table.tsx';
import './workitems.css';

const choices = [
  { value: 'mine', label: 'Mine' },
  { value: 'team', label: 'Of a team' },
  { value: 'all', label: 'All' },
] as const;
type Show = (typeof choices)[number]['value'];

export default function WorkitemsPage() {
  useTitle('Work items');
  const [search, setSearch] = useSearchParams();
  const asked = search.get('show') ?? 'all';
  const show = choices.find(({ value }) => value === asked)?.value ?? 'all';
  const [team, item, execution] = [search.get('team') ?? '', search.get('item'), search.get('execution')];
  const change = useCallback(
    (values: Readonly<Record<string, string>>) => setSearch((old) => withChanges(old, values), { replace: true }),
    [setSearch],
  );
  const close = useCallback(() => change({ item: '' }), [change]);
  const items = useWorkitems(filterOf(show, team, execution));
  return (
    <>
      <FlowsHead />
      <div className="bar workitems-bar">
        <Choice
          label="Whose work items"
          options={choices}
          value={show}
          change={(value) => change({ show: value, item: '' })}
        />
        {show === 'team' ? <TeamField value={team} change={(value) => change({ team: value })} /> : null}
      </div>
      <div className="with-panel">
        <Answer of={items} what="Reading work items">
          {(all) => {
            const shown = show === 'team' && team === '' ? all.filter((each) => each.team !== null) : all;
            if (shown.length === 0) return <Nothing show={show} />;
            return <WorkitemsTable items={shown} open={item ?? undefined} select={(id) => change({ item: id })} />;
          }}
        </Answer>
        {item === null ? null : <WorkitemPanel key={item} id={item} close={close} />}
      </div>
    </>
  );
}

function filterOf(show: Show, team: string, execution: string | null): WorkitemFilter {
  return {
    ...(show === 'mine' && { mine: 'true' as const }),
    ...(show === 'team' && team !== '' && { team }),
    ...(execution !== null && { execution }),
  };
}

interface TeamProps {
  readonly value: string;
  readonly change: (team: string) => void;
}

/** Teams are what documents name: those that have work items are offered. */
function TeamField({ value, change }: TeamProps) {
  const teams = useWorkitems({}).data?.flatMap(({ team }: ListedWorkitem) => team ?? []) ?? [];
  const names = [...new Set([...teams, ...(value === '' ? [] : [value])])].toSorted();
  const options = [{ value: '', label: 'any team' }, ...names.map((name) => ({ value: name, label: name }))];
  return <SelectField label="Team" value={value} options={options} change={change} />;
}

function Nothing({ show }: { readonly show: Show }) {
  return (
    <Empty title={show === 'mine' ? 'Nothing waits for you' : 'No work items'}>
      <p>
        A task with <code>human</code> in a flow waits here until a person answers its form, or until somebody opens the
        link that the flow has sent.
      </p>
    </Empty>
  );
}
