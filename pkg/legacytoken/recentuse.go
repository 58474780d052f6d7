package legacytoken

// usedRecently reports whether the last use of a token is less than Recent days
// ago. A date that cannot be read is no proof of the contrary.
func (o Observation) usedRecently(t *Token) bool {
	if t.LastUsed == "" {
		return false
	}
	days, ok := o.daysSince(t.LastUsed)
	return !ok || days < o.Recent
}
