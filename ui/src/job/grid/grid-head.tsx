/** The names of the tasks above their columns: horizontal if there is room, otherwise slanted. */
import { memo } from 'react';
import type { GridTask } from './use-grid-pages.ts';
import type { Range } from './window.ts';

const levelFrom = 84;
const levelHeight = 32;
const leastSlanted = 56;
const mostSlanted = 112;
/** The height that a letter adds to a slanted name. */
const letterHeight = 4.6;

export function slanted(columnWidth: number): boolean {
  return columnWidth < levelFrom;
}

/** As high as the longest name needs. */
export function headHeight(columnWidth: number, tasks: readonly GridTask[]): number {
  if (!slanted(columnWidth)) return levelHeight;
  const longest = tasks.reduce((most, { name }) => Math.max(most, name.length), 0);
  return Math.min(mostSlanted, Math.max(leastSlanted, 18 + Math.round(longest * letterHeight)));
}

interface Props {
  readonly tasks: readonly GridTask[];
  readonly range: Range;
  readonly columnWidth: number;
  readonly instantWidth: number;
  readonly width: number;
  readonly height: number;
}

export const GridHead = memo(function GridHead({ tasks, range, columnWidth, instantWidth, width, height }: Props) {
  const slant = slanted(columnWidth);
  return (
    <div role="rowgroup" className="grid-head" style={{ height, width }}>
      <div role="row" aria-rowindex={1}>
        <div role="columnheader" aria-colindex={1} className="grid-corner">
          Instant
        </div>
        {tasks.slice(range.first, range.end).map(({ id, name }, i) => (
          <div
            key={id}
            role="columnheader"
            aria-colindex={range.first + i + 2}
            className="grid-task"
            data-slanted={slant ? '' : undefined}
            title={name}
            style={{ left: instantWidth + (range.first + i) * columnWidth, width: columnWidth }}
          >
            <span>{name}</span>
          </div>
        ))}
      </div>
    </div>
  );
});
