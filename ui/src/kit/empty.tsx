/** An empty state: that there is nothing to show, why, and what to do about it. */
import type { ReactNode } from 'react';

export function Empty({ title, children }: { readonly title: string; readonly children?: ReactNode }) {
  return (
    <section className="notice">
      <h2>{title}</h2>
      {children}
    </section>
  );
}
