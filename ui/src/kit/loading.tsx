/** A placeholder while data loads. It stays blank for a moment, so that a quick answer does not flicker. */
const widths = ['w-60', 'w-80', 'w-45', 'w-70', 'w-50'] as const;

export function Loading({ what }: { readonly what: string }) {
  return (
    <div className="loading" role="status">
      <span className="unseen">{what}…</span>
      {widths.map((width) => (
        <span key={width} className={`loading-line ${width}`} aria-hidden="true" />
      ))}
    </div>
  );
}
