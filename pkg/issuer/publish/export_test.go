package publish

// Settle is how long a change on the hub is left alone.
const Settle = settle

// Period is how long it is until the next look if nothing changes.
const Period = period
