/** The names of the tasks above their columns: level where there is room, slanted where there is none. */
import { memo } from 'react';
import type { GridTask } from './use-grid-pages.ts';
import type { Range } from './window.ts';

const levelFrom = 84;
const levelHeight = 32;
const slantedHeight = 108;

export function slanted(columnWidth: number): boolean {
  return columnWidth < levelFrom;
}

export function headHeight(columnWidth: number): number {
  return slanted(columnWidth) ? slantedHeight : levelHeight;
}

interface Props {
  readonly tasks: readonly GridTask[];
  readonly range: Range;
  readonly columnWidth: number;
  readonly instantWidth: number;
}

export const GridHead = memo(function GridHead({ tasks, range, columnWidth, instantWidth }: Props) {
  const slant = slanted(columnWidth);
  const width = instantWidth + tasks.length * columnWidth + (slant ? slantedHeight : 0);
  return (
    <div role="rowgroup" className="grid-head" style={{ height: headHeight(columnWidth), width }}>
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
