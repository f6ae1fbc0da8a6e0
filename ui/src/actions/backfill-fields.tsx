/** The fields of a backfill, and the plan they result in. */
import { Field, SelectField } from '../kit/field.tsx';
import { type Priority, PriorityField } from './priority-field.tsx';
import { parseRange, type Range, RangeFields, rangeOfLast } from './range-fields.tsx';
import type { BackfillPlan } from './use-backfill.ts';

export interface BackfillDraft {
  readonly range: Range;
  readonly order: BackfillPlan['order'];
  readonly priority: Priority;
  readonly onlyMissing: boolean;
  readonly name: string;
  /** Empty for all triggers. */
  readonly triggers: readonly string[];
}

const aDay = 24;

export function startingDraft(nowMs: number): BackfillDraft {
  const range = rangeOfLast(aDay, nowMs);
  return { range, order: 'earliest', priority: 'backfill', onlyMissing: false, name: '', triggers: [] };
}

/** Undefined while the range is invalid. */
export function planOf({
  range,
  order,
  priority,
  onlyMissing,
  name,
  triggers,
}: BackfillDraft): BackfillPlan | undefined {
  const parsed = parseRange(range);
  if (parsed === undefined) return undefined;
  return {
    ...parsed,
    order,
    priority,
    only: onlyMissing ? 'missing' : 'all',
    ...(name.trim() === '' ? {} : { name: name.trim() }),
    ...(triggers.length === 0 ? {} : { triggers: [...triggers] }),
  };
}

const orders = [
  { value: 'earliest', label: 'earliest first' },
  { value: 'latest', label: 'latest first' },
  { value: 'random', label: 'in random order' },
] as const;

interface Props {
  readonly draft: BackfillDraft;
  readonly change: (draft: BackfillDraft) => void;
  /** The names of the job's triggers. */
  readonly triggers: readonly string[];
}

export function BackfillFields({ draft, change, triggers }: Props) {
  return (
    <>
      <RangeFields range={draft.range} change={(range) => change({ ...draft, range })} />
      {triggers.length > 1 ? <TriggerChecks draft={draft} change={change} triggers={triggers} /> : null}
      <div className="fields">
        <SelectField
          label="Order"
          value={draft.order}
          options={orders}
          change={(order) => change({ ...draft, order })}
        />
        <PriorityField value={draft.priority} change={(priority) => change({ ...draft, priority })} />
        <Field label="Name" hint="Optional; a second backfill with the same name is not started">
          {(wiring) => (
            <input
              {...wiring}
              className="input"
              value={draft.name}
              maxLength={200}
              autoComplete="off"
              onChange={(event) => change({ ...draft, name: event.currentTarget.value })}
            />
          )}
        </Field>
      </div>
      <label className="check">
        <input
          type="checkbox"
          checked={draft.onlyMissing}
          onChange={(event) => change({ ...draft, onlyMissing: event.currentTarget.checked })}
        />
        Only instants that have not fired before
      </label>
    </>
  );
}

function TriggerChecks({ draft, change, triggers }: Props) {
  const isChosen = (name: string) => draft.triggers.length === 0 || draft.triggers.includes(name);
  const toggle = (name: string) => {
    const chosen = triggers.filter((each) => (each === name ? !isChosen(each) : isChosen(each)));
    // an empty list means all triggers
    change({ ...draft, triggers: chosen.length === triggers.length ? [] : chosen });
  };
  return (
    <fieldset>
      <legend>Triggers</legend>
      <div className="checks">
        {triggers.map((name) => (
          <label key={name} className="check">
            <input type="checkbox" checked={isChosen(name)} onChange={() => toggle(name)} />
            {name}
          </label>
        ))}
      </div>
    </fieldset>
  );
}
