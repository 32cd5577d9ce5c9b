package providertest

// testCase is one promise of the contract.
type testCase struct {
	promise string
	check   func(r *rig)
}

// cases are all promises, in the order of a VM's life.
func cases() []testCase {
	return []testCase{
		{"create makes what was asked for", createMakesWhatWasAskedFor},
		{"create twice makes one", createTwiceMakesOne},
		{"concurrent creates make one", concurrentCreatesMakeOne},
		{"create with another spec conflicts and changes nothing", createWithAnotherSpecConflicts},
		{"the same name of another owner conflicts and is untouched", nameOfAnotherOwnerConflicts},
		{"the next incarnation is another instance", nextIncarnationIsAnother},
		{"a request against the rules is permanent and makes nothing", requestAgainstTheRules},
		{"create after the instance went makes a new one", createAfterGoneMakesNew},

		{"get of an absent instance is not found", getAbsent},
		{"becomes running with an address", becomesRunning},
		{"a stopped instance is terminated and keeps its name", stoppedKeepsItsName},
		{"a vanished instance is absent", vanishedIsAbsent},

		{"delete of an absent instance succeeds", deleteAbsent},
		{"delete removes, however often it is called", deleteRemoves},
		{"delete of a provisioning instance removes it", deleteOfProvisioning},
		{"delete of a terminated instance removes it", deleteOfTerminated},

		{"list is ours only", listIsOursOnly},
		{"list has every page", listHasEveryPage},
		{"an incomplete list is not silence", incompleteListIsNotSilence},

		{"a refused create has the class of its cause and makes nothing", refusedCreateHasItsClass},
		{"a stock-out is a quota error that names the zone", stockOutNamesTheZone},
		{"a launch that fails later is told by get", failedLaunchIsTold},
		{"a lost reply then a retry makes one", lostReplyThenRetryMakesOne},
		{"an outage is never absence", outageIsNotAbsence},
		{"a cancelled call leaves nothing", cancelledLeavesNothing},
		{"a call cancelled on its way is picked up by the next", cancelledOnItsWayIsPickedUp},
	}
}
