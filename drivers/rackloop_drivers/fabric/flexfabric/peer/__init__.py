"""The FlexFabric switch simulated: its end of the wire, in front of a switching matrix."""
