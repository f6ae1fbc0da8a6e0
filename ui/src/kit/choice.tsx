/** One of a few, all in sight. */
interface Props<T extends string> {
  readonly label: string;
  readonly options: readonly { readonly value: T; readonly label: string }[];
  readonly value: string;
  readonly change: (value: T) => void;
}

export function Choice<T extends string>({ label, options, value, change }: Props<T>) {
  return (
    <fieldset className="choice">
      <legend className="unseen">{label}</legend>
      {options.map((option) => (
        <button
          key={option.value}
          type="button"
          aria-pressed={option.value === value}
          onClick={() => change(option.value)}
        >
          {option.label}
        </button>
      ))}
    </fieldset>
  );
}
