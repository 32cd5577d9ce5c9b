package providertest

// testCase is one promise of the contract.
type testCase struct {
	promise string
	check   func(r *rig)
}

func cases() []testCase { return nil }
