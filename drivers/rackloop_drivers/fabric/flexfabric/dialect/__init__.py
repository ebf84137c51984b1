"""The SCPI dialect of the FlexFabric switch: lines of bytes to values and back."""
